"""Section `policy` of a study: each policy of a factor has its own settings, and a control has none."""

from __future__ import annotations

from steelyard.plan.expand import expand
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY


def policies(section: str, factor: str) -> list[dict[str, object] | None]:
    """The section of each treatment, in the order of the levels."""
    text = SMALL_STUDY.replace("[design]", f"[policy]\n{section}\n[design]").replace("nodes = [1, 2]", factor)
    plan = expand(read_text(text))
    levels = list(dict.fromkeys(trial.treatment["policy"] for trial in plan.trials))
    of_levels = {trial.treatment["policy"]: trial.settings.root.get("policy") for trial in plan.trials}
    return [of_levels[level] for level in sorted(levels, key=str)]


def test_each_policy_has_its_own_settings_and_a_control_none() -> None:
    section = "times = [[20, 2]]\nthreshold = 80\nmax_nodes = 3"
    none, scheduled, threshold = policies(section, 'policy = ["none", "scheduled", "threshold"]')
    assert none is None
    assert scheduled == {"name": "scheduled", "max_nodes": 3, "times": [[20.0, 2]]}
    assert threshold is not None
    assert (threshold["threshold"], threshold["max_nodes"], "times" in threshold) == (80.0, 3, False)


def test_a_control_is_the_same_whatever_the_policies_are() -> None:
    plain = {trial.id for trial in expand(read_text(SMALL_STUDY)).trials}
    for section in ("times = [[20, 2]]", "times = [[30, 3]]\nmax_nodes = 9"):
        text = SMALL_STUDY.replace("[design]", f"[policy]\n{section}\n[design]")
        plan = expand(read_text(f'{text}policy = ["none", "scheduled"]\n'))
        assert plain < {trial.id for trial in plan.trials}


def test_settings_in_sub_tables_are_those_of_one_policy() -> None:
    section = "max_nodes = 3\n[policy.hpa]\ntarget = 60\n[policy.threshold]\nthreshold = 80"
    hpa, threshold = policies(section, 'policy = ["hpa", "threshold"]')
    assert hpa is not None
    assert threshold is not None
    assert (hpa["target"], threshold["threshold"]) == (60.0, 80.0)


def test_the_largest_size_from_the_beginning() -> None:
    text = SMALL_STUDY.replace("[design]", '[policy]\nname = "static-max"\nmax_nodes = 5\n[design]')
    plan = expand(read_text(text.replace("nodes = [1, 2]", '"system.servers" = [1]')))
    assert {trial.settings.site.nodes for trial in plan.trials} == {5}
    assert not any(trial.settings.policy.changes for trial in plan.trials)
