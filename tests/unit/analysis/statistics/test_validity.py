from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.analysis.statistics.validity import drift
from tests.unit.analysis.made import cell, frame, record

TIME = "execution_time_ms"


def trials(per_hour: float, seed: int = 1, noise: float = 0.005, starts: int = 6, per_start: int = 4):
    """Alternating sizes with very different times, 600 s apart, drifting by a fraction an hour; starts differ too."""
    rng = np.random.default_rng(seed)
    found = []
    for start in range(1, starts + 1):
        effects = np.exp(rng.normal(0, noise, 2))
        for order in range(1, per_start + 1):
            for place, nodes in enumerate((1, 3)):
                begun_s = 600.0 * ((start - 1) * 2 * per_start + place * per_start + order)
                value = (
                    1000.0
                    * nodes
                    * (1 + per_hour) ** (begun_s / 3600)
                    * float(effects[place] * np.exp(rng.normal(0, noise)))
                )
                found.append(record(value, nodes=nodes, start=start, order=order, replicate=order, begun_s=begun_s))
    return found


def test_a_planted_drift_is_found_and_effects_of_treatments_are_not_taken_for_one():
    _, per_hour, sentence = drift(frame(trials(0.02)), TIME)
    assert per_hour is not None
    assert per_hour.value == pytest.approx(2.0, abs=0.3)
    assert "drifted by" in sentence


def test_no_drift_is_not_shown_rather_than_excluded():
    assert drift(frame(trials(0.0, seed=3)), TIME)[2].startswith("Drift is not shown")


def test_slope_and_jackknife_against_regressions_with_a_dummy_per_treatment():
    rows = frame(trials(0.01))
    found = drift(rows, TIME)[1]
    y = np.log(rows.data[TIME].to_numpy())
    hours = rows.data["begun_s"].to_numpy() / 3600
    design = np.column_stack([hours, rows.data["nodes"] == 1, rows.data["nodes"] == 3]).astype(float)
    starts = rows.data["start"].to_numpy()
    slope = sm.OLS(y, design).fit().params[0]
    without = [sm.OLS(y[starts != one], design[starts != one]).fit().params[0] for one in set(starts)]
    error = np.sqrt(11 / 12 * np.sum((np.array(without) - slope) ** 2))
    assert found is not None
    assert found.value == pytest.approx(100 * np.expm1(slope))
    assert np.log1p(found.high / 100) - slope == pytest.approx(2.200985 * error, rel=1e-5)  # t of 11 degrees


def test_the_interval_of_a_drift_covers_it_although_starts_differ():
    covered = []
    for seed in range(100):
        found = drift(frame(trials(0.02, seed=seed)), TIME)[1]
        assert found is not None
        covered.append(found.low <= 2.0 <= found.high)
    assert np.mean(covered) >= 0.91


def test_few_trials_say_so():
    assert drift(frame(cell([[5.0]])), TIME)[2].startswith("Too few")


def test_a_short_study_does_not_speak_of_hours():
    short = [record.model_copy(update={"begun_s": 1000.0 + 10 * i}) for i, record in enumerate(cell([[5.0, 6.0]] * 4))]
    _, per_hour, sentence = drift(frame(short), TIME)
    assert per_hour is None
    assert "too short to show drift" in sentence
