from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analysis.inference import estimates
from steelyard.analysis.statistics.summary import summaries, summarise
from steelyard.analysis.statistics.trials import points
from tests.unit.analysis.made import FAULT, VOIDED, cell, frame, record

TIME = "execution_time_ms"
A1 = {"nodes": 1, "workload": "A"}


def test_numbers_of_one_treatment():
    values = [[5.0, 7.0, 6.0], [8.0, 10.0, 9.0]]
    found = summarise(frame(cell(values)), TIME, A1)
    flat = pl.Series([value for start in values for value in start])
    assert (found.n, found.starts) == (6, 2)
    assert [one.value for one in (found.min, found.max, found.range) if one] == [5, 10, 5]
    assert found.sd is not None
    assert found.sd.value == pytest.approx(flat.std())
    assert [(one.value, one.low) for one in (found.q1, found.q3) if one] == [(6.25, None), (8.75, None)]
    assert found.median is not None
    assert (found.median.low, found.median.value, found.median.high) == (None, 7.5, None)
    alone = summarise(frame(cell([[*values[0], *values[1]]])), TIME, A1).median
    assert alone is not None
    assert (alone.low, alone.value, alone.high) == pytest.approx((5 + 5 / 14, 7.5, 10 - 5 / 14))


def test_two_levels_of_interval_are_kept_apart():
    """Trials agree within a start and starts do not: the interval over trials is far too narrow."""
    found = summarise(frame(cell([[10.0, 10.1, 9.9], [12.0, 12.1, 11.9], [11.0, 11.1, 10.9]])), TIME, A1)
    assert found.mean is not None
    assert found.mean_of_starts is not None
    assert found.mean.n == 9
    assert found.mean_of_starts.n == 3
    assert found.mean_of_starts.value == pytest.approx(11)
    assert found.mean_of_starts.high == pytest.approx(11 + 4.30265 / 3**0.5, rel=1e-4)  # t(2) sd / sqrt(3), sd = 1
    assert found.mean.high < found.mean_of_starts.high
    assert "over trials" in found.mean.method
    assert "over start means" in found.mean_of_starts.method


def test_one_start_has_no_interval_for_other_starts_and_says_so():
    found = summarise(frame(cell([[10.0, 11.0, 12.0]])), TIME, A1)
    assert found.mean_of_starts is None
    assert "one start" in found.notes[0]


def test_a_treatment_that_always_fails_stays_in_the_table():
    found = summarise(frame([record(None, verdict=FAULT), record(None, replicate=2, order=2, verdict=FAULT)]), TIME, A1)
    assert (found.n, found.excluded, found.system_faults, found.mean) == (0, 2, 2, None)


def test_an_interval_over_trials_is_of_independent_ones():
    """24 trials: of one start, of 24 starts, of 8 starts; the last have an interval over starts only."""
    values = [float(v) for v in np.random.default_rng(1).normal(100, 1, 24)]
    for starts, independent in ((1, True), (24, True), (8, False)):
        found = summarise(frame(cell(np.array(values).reshape(starts, -1).tolist())), TIME, A1)
        for one in (found.sd, found.q1, found.median, found.q3):
            assert (one.low is not None) == independent, one.method
        assert (found.median_of_starts.low is not None) == (starts >= 6)
    assert found.median.method == "median; 24 trials of 8 starts are not independent: no interval"
    assert found.median_of_starts.n == 8
    assert found.median.value == pytest.approx(np.median(values))


@pytest.mark.parametrize(("starts", "trials"), [(6, 4), (10, 3)])
def test_the_interval_of_the_median_of_starts_holds(starts, trials):
    """Starts vary by 3%, trials by 2%: over trials as independent, it held in 84% with ten starts."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(400):
        of = 100 * np.exp(0.03 * rng.normal(size=(starts, 1)) + 0.02 * rng.normal(size=(starts, trials)))
        found = estimates.median(np.median(of, axis=1).tolist(), "ms", 0.95)
        held += found.low <= 100 <= found.high
    assert held / 400 == pytest.approx(0.95, abs=0.025)


def test_points_hold_every_trial_with_a_value():
    records = [*cell([[9.0, 5.0]]), record(7.0, order=3, verdict=VOIDED), record(None, order=4, verdict=FAULT)]
    found = points(frame(records, warm_up_trials=1), TIME)
    assert [(one.value, one.used, one.order_of_treatment) for one in found] == [
        (9, False, 1),
        (5, True, 2),
        (7, False, None),
    ]
    assert found[1].elapsed_h == pytest.approx(10 / 3600)


VALUES = st.lists(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=5), min_size=1, max_size=3)


@settings(max_examples=25, deadline=None)
@given(VALUES, st.integers(0, 2), st.integers(1, 6), st.floats(0.1, 1e9), st.booleans())
def test_an_invalid_trial_never_changes_a_summary_but_by_what_it_served(values, warm_up, order, value, served):
    """With warm-up trials only an attempt that nothing was answered of leaves the cut where it was."""
    records = cell(values)
    spoilt = record(value, order=order, replicate=9, verdict=VOIDED, begun_s=1000.0 + order)
    if served:
        warm_up = 0
    else:
        spoilt = spoilt.model_copy(update={"responses": spoilt.responses.model_copy(update={"operations": 0})})
    before = summaries(frame(records, warm_up), TIME)
    after = summaries(frame([*records, spoilt], warm_up), TIME)
    dropped = {"excluded", "excluded_because", "exclusions"}
    assert [one.model_dump(exclude=dropped) for one in before] == [one.model_dump(exclude=dropped) for one in after]
    assert after[0].excluded == before[0].excluded + 1


@settings(max_examples=25, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(values, random):
    records = cell(values) + cell(values, nodes=3)
    shuffled = list(records)
    random.shuffle(shuffled)
    assert summaries(frame(records, 1), TIME) == summaries(frame(shuffled, 1), TIME)
