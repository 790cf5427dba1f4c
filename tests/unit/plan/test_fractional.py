"""Fractional designs as studies: their treatments, what `check` says of them, and what is refused."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.plan import expand, warnings
from steelyard.study.treatments import fraction_of, treatments_of
from tests.unit.study.paper import study

FACTORS = """
[factors]
nodes = [1, 2]
load.threads = [1, 2]
load.routing = ["token", "round-robin"]
load.timeout_ms = [1000, 2000]
"""


def asked(design: str, factors: str = FACTORS) -> str:
    return f'[design]\nkind = "fractional"\n{design}\n{factors}'


def test_half_of_four_factors_of_two_levels() -> None:
    found = study(asked("resolution = 4"))
    treatments = treatments_of(found)
    assert len(treatments) == len({tuple(one.items()) for one in treatments}) == 8
    for factor in ("nodes", "load.threads", "load.routing", "load.timeout_ms"):
        levels = [one[factor] for one in treatments]
        assert {levels.count(level) for level in set(levels)} == {4}, "every level as often"
    plan = expand(found)
    assert len(plan.trials) == 8 * found.design.starts * found.design.trials
    for start in {trial.start for trial in plan.trials}:
        served = [trial for trial in plan.trials if trial.start == start]
        assert {trial.treatment["load.threads"] for trial in served} == {1, 2}


def test_factors_of_more_levels_are_crossed_with_the_fraction() -> None:
    found = study(asked("resolution = 3", FACTORS + "load.connections_per_node = [1, 2, 3]\n"))
    made = fraction_of(found)
    assert made is not None
    assert len(treatments_of(found)) == 3 * len(list(made.combinations()))


def test_aliases_are_said_before_the_study() -> None:
    found = study(asked('generators = { "load.routing" = "nodes * load.threads" }'))
    said = " ".join(warnings(found, expand(found)))
    assert "a fraction, 1 in 2 of the combinations of 4 factors of two levels, resolution 3" in said
    assert "the effect of nodes cannot be separated from load.threads x load.routing" in said


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ("", "needs generators or a resolution"),
        ('resolution = 3\ngenerators = { nodes = "load.threads * load.routing" }', "not both"),
        ("resolution = 6", "no half of 4 factors"),
        ('generators = { "load.routing" = "nodes" }', "nodes and load.routing would always move together"),
        ('generators = { "load.routing" = "nodes * workload" }', "workload is not a factor of two levels"),
        ("resolution = 4\ntreatments = [{ nodes = 1 }]", "treatments are allowed only in a listed design"),
    ],
)
def test_designs_that_are_refused(design: str, words: str) -> None:
    with pytest.raises(StudyError) as refused:
        expand(study(asked(design)))
    assert words in "\n".join(str(one) for one in (refused.value, *refused.value.errors))


def test_generators_belong_to_fractions_only() -> None:
    with pytest.raises(StudyError) as refused:
        study("[design]\nresolution = 4\n" + FACTORS)
    assert "is allowed only in a fractional design" in "\n".join(map(str, (refused.value, *refused.value.errors)))


def test_a_factor_that_two_hard_ones_generate_is_one_of_the_starts() -> None:
    design = 'generators = { "load.threads" = "nodes * workload.records" }'
    factors = "[factors]\nnodes = [1, 2]\nworkload.records = [100, 200]\nload.threads = [1, 2]\n"
    with pytest.raises(StudyError, match="has one level in each start"):
        expand(study(asked(design, factors)))
