"""Thresholds that trials gave, with their interval, and what drifted between the phases."""

from __future__ import annotations

import math

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.derived_threshold import DerivedThreshold
from steelyard.judging.derived import derived
from steelyard.model.derived import Derived
from tests.unit.judging.test_derived import records
from tests.unit.lab.fakes import plan_of, study
from tests.unit.plan.test_derived_levels import STUDY

FIRST = [70.0, 73.0, 76.0]
DRIFT = 0.98


def analysed(**changes: object) -> Results:
    a_study = study(**{**STUDY, **changes}, analysis={"response": "cpu_percent_mean"})
    plan = plan_of(a_study)
    every = records(plan, FIRST + [0.0] * len(plan.trials))
    given = [
        value.model_copy(update={"acted": 2}) if isinstance(value, Derived) else None
        for value in (derived(a_study.derived, one.settings, every[:3]) for one in every)
    ]
    by_block = dict(zip([one.block for one in every[:3]], FIRST, strict=True))
    later = [
        record.model_copy(
            update={
                "derived": value,
                "measures": {"cpu_percent_mean": by_block[record.block] * (DRIFT if record.control else 0.9)},
            }
        )
        for record, value in zip(every[3:], given[3:], strict=True)
    ]
    return analyse([*every[:3], *later], a_study, seed=1)


def test_the_threshold_its_mean_and_the_drift_of_the_control() -> None:
    results = analysed()
    (row,) = results.of(DerivedThreshold)
    assert (row.level, row.trials, row.add, row.treatment["policy"]) == ("phase-1", 3, -2.5, "threshold")
    assert row.threshold == pytest.approx(70.5)
    assert row.mean.value == pytest.approx(73.0)
    half = 4.302653 * 3 / math.sqrt(3)
    assert (row.mean.low, row.mean.high) == (pytest.approx(73 - half, rel=1e-5), pytest.approx(73 + half, rel=1e-5))
    assert row.acted is not None
    assert (row.acted.value, row.acted.n) == (pytest.approx(200 / 3), 3)
    assert any("would have acted in 67% [9, 99] of the trials without" in one for one in results.caveats)
    assert row.drift is not None
    assert row.drift.value == pytest.approx(DRIFT)
    (said,) = [one for one in results.caveats if one.startswith("Trials that gave a threshold")]
    assert said == (
        "Trials that gave a threshold came before those that used it: in between, the control changed by drift "
        "alone: CPU of a database node −2.0% (over 3 blocks)."
    )


def test_without_a_control_it_is_said_that_drift_is_not_known() -> None:
    results = analysed(design={"starts": 3, "trials": 1, "seed": 3})
    (row,) = results.of(DerivedThreshold)
    assert row.drift is None
    assert any("no control was measured in both phases" in one for one in results.caveats)
