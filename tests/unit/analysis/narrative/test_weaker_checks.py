"""Checks that were switched off, loosened or not made are said first."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.narrative.weaker_checks import SUBJECTS, weakened
from steelyard.judging.verdict import BACKGROUND_UNKNOWN, CEILING_UNKNOWN
from steelyard.model.study import Limits
from steelyard.model.verdict_reasons import ReasonKind, Verdict
from tests.unit.analysis.made import cell, study


def test_every_limit_that_voids_a_trial_has_its_words() -> None:
    limits = {kind.about.limit for kind in ReasonKind if kind.about.limit}
    assert set(SUBJECTS) == limits | {"background_cpu_fraction", "steal_fraction"}
    assert set(SUBJECTS) <= set(Limits.model_fields)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, []),
        ({"background_cpu_fraction": 0.1, "offered_rate_fraction": 0.99}, []),
        (
            {"background_cpu_fraction": 1.0},
            ["The check on other programs (`limits.background_cpu_fraction = 1`) was switched off: "],
        ),
        (
            {"background_cpu_fraction": 0.5, "offered_rate_fraction": 0.9},
            [
                "The limit on other programs (50%, by default 20%: `limits.background_cpu_fraction`) and the offered "
                "rate (90%, by default 98%: `limits.offered_rate_fraction`) was loosened: "
            ],
        ),
        (
            {"steal_fraction": 1.0, "lag_p99_ms": 50.0},
            [
                "The check on other guests of the hardware (`limits.steal_fraction = 1`) was switched off; the limit "
                "on the generator's own delay (50 ms, by default 10 ms: `limits.lag_p99_ms`) was loosened: "
            ],
        ),
    ],
)
def test_a_check_is_weaker_where_more_trials_pass_it(limits: dict[str, float], said: list[str]) -> None:
    found = weakened(study(limits=limits))
    assert found == [f"{text}trials may count that the default limits leave out." for text in said]
    assert list(analyse(cell([[1.0]]), study(limits=limits), seed=1).caveats[: len(said)]) == found


def test_checks_that_could_not_be_made_are_counted() -> None:
    notes = (f"{BACKGROUND_UNKNOWN}: fewer than 3 whole seconds", f"{CEILING_UNKNOWN}: not calibrated")
    records = cell([[1.0, 1.1], [1.2, 1.0]])
    noted = [one.model_copy(update={"verdict": Verdict(outcome="valid", notes=notes)}) for one in records[:3]]
    caveats = analyse([*noted, *records[3:]], study(), seed=1).caveats
    assert caveats[0] == "The check on other programs could not be made for 3 of 4 trials: fewer than 3 whole seconds."
    assert caveats[-1] == (
        "The load was not checked against the generator's ceiling, only the load of its threads: not calibrated."
    )
