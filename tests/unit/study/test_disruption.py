"""Section `disruption` of a study: each disruption of a factor has its own settings, and a control has none."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.plan.expand import expand
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY


def sections(section: str, factor: str) -> dict[str, dict[str, object] | None]:
    """The section of each treatment by its level."""
    text = SMALL_STUDY.replace("[design]", f"[disruption]\n{section}\n[design]").replace("nodes = [1, 2]", factor)
    return {
        str(trial.treatment["disruption"]): trial.settings.root.get("disruption")
        for trial in expand(read_text(text)).trials
    }


def test_each_disruption_has_its_own_settings_and_a_control_none() -> None:
    factor = 'disruption = ["none", "stress-cpu", "stress-memory"]'
    assert sections("threads = 2\nmb = 64\nat_s = 12", factor) == {
        "none": None,
        "stress-cpu": {"name": "stress-cpu", "at_s": 12.0, "threads": 2},
        "stress-memory": {"name": "stress-memory", "at_s": 12.0, "mb": 64},
    }


def test_a_control_is_the_trial_that_it_always_was() -> None:
    plain = {trial.id for trial in expand(read_text(SMALL_STUDY)).trials}
    text = SMALL_STUDY.replace("[design]", "[disruption]\nat_s = 12\n[design]")
    plan = expand(read_text(f'{text}disruption = ["none", "kill"]\n'))
    assert plain < {trial.id for trial in plan.trials}
    assert {trial.treatment["disruption"]: trial.settings.ends_start for trial in plan.trials} == {
        "none": False,
        "kill": True,
    }


def test_targets_and_times_are_factors() -> None:
    text = SMALL_STUDY.replace("[design]", '[disruption]\nname = "noop"\n[design]')
    plan = expand(read_text(f'{text}"disruption.on" = ["one", "n1,n2"]\n"disruption.for_s" = [5, 10]\n'))
    found = {(trial.settings.disruption.on, trial.settings.disruption.for_s) for trial in plan.trials}
    assert found == {("one", 5), ("one", 10), ("n1,n2", 5), ("n1,n2", 10)}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('name = "kill"\non = "most"', 'targets are one, minority, majority, all, or names of nodes such as "n1,n3"'),
        ('name = "kill"\nthreads = 2', "a setting of disruption stress-cpu, and the disruption is kill"),
        ('name = "kil"', "unknown disruption"),
        ('name = "kill"\nfor_s = 0', "greater than 0|more than 0"),
    ],
)
def test_what_is_refused(section: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        read_text(SMALL_STUDY.replace("[design]", f"[disruption]\n{section}\n[design]"))
