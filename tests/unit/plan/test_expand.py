from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.plan import expand, warnings
from steelyard.plan.expand import CONTROL_REPLICATES_FROM
from steelyard.study import treatments_of
from tests.unit.study.paper import OTHER, WORKLOAD, study

quick = settings(max_examples=30, deadline=None)


def factorial(
    nodes: list[int],
    threads: list[int],
    *,
    starts: int = 2,
    trials: int = 3,
    seed: int = 1,
    order: str = "blocks",
    control: bool = False,
) -> Study:
    line = f"control = {{ nodes = {nodes[0]}, load.threads = {threads[-1]} }}\n" if control else ""
    return study(
        f'[design]\nstarts = {starts}\ntrials = {trials}\nseed = {seed}\norder = "{order}"\n{line}'
        f"[factors]\nnodes = {nodes}\nload.threads = {threads}\n"
    )


levels = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True)
studies = st.builds(
    factorial,
    levels,
    levels,
    starts=st.integers(1, 3),
    trials=st.integers(1, 4),
    seed=st.integers(0, 2**63 - 1),
    order=st.sampled_from(["blocks", "published"]),
    control=st.booleans(),
)


def frozen(treatment: dict[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(treatment.items()))


@quick
@given(studies)
def test_every_treatment_gets_its_replicates_in_every_block(asked: Study) -> None:
    plan = expand(asked)
    counted = Counter((trial.block, frozen(trial.treatment)) for trial in plan.trials if not trial.control)
    wanted = {frozen(treatment) for treatment in treatments_of(asked)}
    assert counted == {
        (block, treatment): asked.design.trials for block in range(1, asked.design.starts + 1) for treatment in wanted
    }
    for trial in plan.trials:
        assert trial.settings.root["site"]["nodes"] == trial.treatment["nodes"]
        assert trial.settings.root["load"]["threads"] == trial.treatment["load.threads"]


@quick
@given(studies)
def test_starts_are_one_run_of_trials_with_the_same_hard_levels(asked: Study) -> None:
    plan = expand(asked)
    assert plan.hard == ("nodes",)
    runs = [
        trial.start
        for index, trial in enumerate(plan.trials)
        if not index or trial.start != plan.trials[index - 1].start
    ]
    assert len(runs) == len(set(runs)) == asked.design.starts * len(plan.factors["nodes"])
    for start in runs:
        inside = [trial for trial in plan.trials if trial.start == start]
        assert len({(trial.treatment["nodes"], trial.block) for trial in inside}) == 1
    blocks = [trial.block for trial in plan.trials]
    assert blocks == sorted(blocks)


@quick
@given(studies)
def test_each_turn_of_a_start_is_a_permutation_of_its_treatments(asked: Study) -> None:
    plan = expand(asked)
    if asked.design.order != "blocks":
        return
    for start in {trial.start for trial in plan.trials}:
        inside = [trial for trial in plan.trials if trial.start == start and not trial.control]
        easy = len(plan.factors["load.threads"])
        for turn in range(asked.design.trials):
            once = inside[turn * easy : (turn + 1) * easy]
            assert {trial.replicate for trial in once} == {turn + 1}
            assert len({frozen(trial.treatment) for trial in once}) == easy


@quick
@given(studies)
def test_the_same_seed_gives_the_same_plan(asked: Study) -> None:
    assert expand(asked) == expand(asked)


@quick
@given(studies)
def test_ids_are_unique_and_positions_count(asked: Study) -> None:
    plan = expand(asked)
    assert len({trial.id for trial in plan.trials}) == len(plan.trials)
    assert [trial.position for trial in plan.trials] == list(range(len(plan.trials)))


@quick
@given(studies, st.integers(0, 2), st.integers(0, 2), st.integers(10, 12))
def test_a_widened_study_keeps_its_trials(asked: Study, starts: int, trials: int, level: int) -> None:
    wider = asked.model_copy(
        update={
            "design": asked.design.model_copy(
                update={"starts": asked.design.starts + starts, "trials": asked.design.trials + trials}
            ),
            "factors": {**asked.factors, "nodes": (*asked.factors["nodes"], level)},
        }
    )
    before = {trial.id: trial for trial in expand(asked).trials}
    after = {trial.id: trial for trial in expand(wider).trials}
    assert set(before) <= set(after)
    for name, trial in before.items():
        same = after[name]
        assert (same.seed, same.control, same.treatment, same.start) == (
            trial.seed,
            trial.control,
            trial.treatment,
            trial.start,
        )


@quick
@given(studies)
def test_the_control_makes_pairs_in_every_block(asked: Study) -> None:
    plan = expand(asked)
    for block in range(1, asked.design.starts + 1):
        extra = [trial for trial in plan.trials if trial.block == block and trial.control]
        assert len(extra) == (asked.design.trials if asked.design.control else 0)
        for trial in extra:
            pair = trial.replicate - CONTROL_REPLICATES_FROM + 1
            twin = [
                other
                for other in plan.trials
                if (other.start, other.replicate, other.treatment) == (trial.start, pair, trial.treatment)
            ]
            assert len(twin) == 1


@quick
@given(studies)
def test_treatments_are_compared_on_common_random_numbers(asked: Study) -> None:
    plan = expand(asked)
    seeds = {(trial.start_replicate, trial.replicate): trial.seed for trial in plan.trials}
    assert all(trial.seed == seeds[trial.start_replicate, trial.replicate] for trial in plan.trials)
    assert len(set(seeds.values())) == len(seeds)
    assert all(0 <= seed < 2**53 for seed in seeds.values())


def order_of(plan: Plan) -> list[tuple[object, ...]]:
    return [tuple(trial.treatment.values()) for trial in plan.trials]


def test_orders_differ_between_seeds_and_blocks() -> None:
    orders = {tuple(order_of(expand(factorial([1, 3, 6], [1, 2, 4], seed=seed)))) for seed in range(10)}
    assert len(orders) == 10
    plan = expand(factorial([1, 2, 3, 4, 5, 6], [1], starts=2, trials=1))
    assert order_of(plan)[:6] != order_of(plan)[6:]


def test_orders_are_fair() -> None:
    """Each of 3 cluster sizes comes first about equally often: chi-squared with 2 degrees of freedom, p > 0.001."""
    plan = expand(factorial([1, 3, 6], [1], starts=600, trials=1))
    first = Counter(trial.treatment["nodes"] for trial in plan.trials[::3])
    assert sum((count - 200) ** 2 / 200 for count in first.values()) < 13.8


def test_published_order() -> None:
    plan = expand(factorial([3, 1], [4, 2], starts=1, trials=2, order="published", control=True))
    assert order_of(plan) == [(3, 4)] * 2 + [(3, 2)] * 4 + [(1, 4)] * 2 + [(1, 2)] * 2
    assert [trial.control for trial in plan.trials] == [False] * 4 + [True] * 2 + [False] * 4


def test_ids_do_not_depend_on_how_factors_are_written() -> None:
    one = expand(factorial([1, 3], [2], starts=1, trials=1)).trials[0]
    other = expand(study("threads = 2\n[design]\nstarts = 1\ntrials = 1\n[factors]\nsite.nodes = [1]\n")).trials[0]
    ids = {trial.id for trial in expand(factorial([1, 3], [2], starts=1, trials=1)).trials}
    assert other.id in ids
    assert one.id.endswith("-s1-t1")
    assert len(one.id.split("-")[0]) == 12


def test_a_study_without_factors_has_one_treatment() -> None:
    plan = expand(study("[design]\nstarts = 1\ntrials = 2\n"))
    assert [trial.treatment for trial in plan.trials] == [{}, {}]
    assert len({trial.start for trial in plan.trials}) == 1


def test_listed_starts_serve_their_own_treatments() -> None:
    plan = expand(
        study(
            '[design]\nkind = "listed"\nstarts = 1\ntrials = 1\norder = "published"\n'
            "treatments = [{ nodes = 1, load.threads = 1 }, { nodes = 3, load.threads = 1 }, "
            "{ nodes = 3, load.threads = 2 }]"
        )
    )
    assert order_of(plan) == [(1, 1), (3, 1), (3, 2)]
    assert len({trial.start for trial in plan.trials}) == 2


def test_a_control_that_is_no_treatment_gets_a_start_of_its_own() -> None:
    plan = expand(
        study(
            '[design]\nkind = "listed"\nstarts = 2\ntrials = 1\n'
            "control = { nodes = 1, system.heap_mb = 256 }\n"
            "treatments = [{ nodes = 1, system.heap_mb = 512 }, { nodes = 3, system.heap_mb = 256 }, "
            "{ nodes = 3, system.heap_mb = 512 }]"
        )
    )
    for block in (1, 2):
        alone = [trial for trial in plan.trials if trial.block == block and trial.control]
        assert len(alone) == 2
        assert len({trial.start for trial in alone}) == 1
        assert all(trial.control for trial in plan.trials if trial.start == alone[0].start)


def test_factors_that_move_together_are_refused() -> None:
    with pytest.raises(StudyError, match=r"'nodes' and 'load\.threads' always move together"):
        expand(
            study(
                '[design]\nkind = "listed"\n'
                "treatments = [{ nodes = 1, load.threads = 1 }, { nodes = 3, load.threads = 2 }]"
            )
        )


def test_too_many_trials_are_refused() -> None:
    with pytest.raises(StudyError, match="at most 100000"):
        expand(factorial([1, 2], [1], starts=1000, trials=100))


def said(asked: Study) -> str:
    return "\n".join(warnings(asked, expand(asked)))


def test_one_start_has_no_error_term() -> None:
    assert "no error term for nodes" in said(factorial([1, 3], [1, 2], starts=1))
    assert "no error term" not in said(factorial([1, 3], [1, 2], starts=2))
    assert "no error term" not in said(factorial([1], [1, 2], starts=1))


def test_published_order_confounds_drift() -> None:
    assert "drift is confounded with treatment" in said(factorial([1, 3], [1], order="published"))
    assert "drift" not in said(factorial([1, 3], [1]))


def test_few_sizes_are_no_law() -> None:
    assert "too few for a scalability law" in said(factorial([1, 3], [1]))
    assert "law" not in said(factorial([1, 2, 3, 4, 5], [1]))


def test_a_factor_that_another_fixes_is_named() -> None:
    asked = study(
        '[design]\nkind = "listed"\ntreatments = [{ load.timeout_ms = 1, load.threads = 1 }, '
        "{ load.timeout_ms = 2, load.threads = 1 }, { load.timeout_ms = 3, load.threads = 2 }]"
    )
    assert "load.timeout_ms fixes load.threads" in said(asked)


def test_a_factor_that_varies_with_the_start_only_is_refused() -> None:
    asked = study(
        '[design]\nkind = "listed"\ntreatments = [{ nodes = 1, load.threads = 1 }, '
        "{ nodes = 2, load.threads = 1 }, { nodes = 3, load.threads = 2 }]"
    )
    with pytest.raises(StudyError, match="has one level in each start: it varies with nodes only"):
        expand(asked)


def test_workloads_are_easy_and_records_hard() -> None:
    plan = expand(study(f'[factors]\nworkload = ["{WORKLOAD}", "{OTHER}"]\n"workload.records" = [100, 200]\n'))
    assert plan.hard == ("workload.records",)
    assert len({trial.start for trial in plan.trials}) == 2 * 2
    assert math.prod(len(found) for found in plan.factors.values()) * 2 * 3 == len(plan.trials)
