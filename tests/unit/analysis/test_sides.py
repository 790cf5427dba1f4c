"""Two sides against each other: what is paired, what is decided, how much more would decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.analysis.compare import compare
from steelyard.analysis.sides import Side, contrasts, limits_percent, more_starts, pair
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate

from .made import cell, drawn, frame, record

TIME = "execution_time_ms"


def against(records_a, records_b, *, margin=None, fixed_a=None, fixed_b=None):
    a, b = Side("a", frame(records_a), fixed_a or {}), Side("b", frame(records_b), fixed_b or {})
    return contrasts(a, b, pair(a, b), TIME, 0.95, margin)


def within(records, fixed_a, fixed_b, margin=None):
    rows = frame(records)
    a, b = Side("a", rows, fixed_a), Side("b", rows, fixed_b)
    return contrasts(a, b, pair(a, b), TIME, 0.95, margin)


def test_two_treatments_of_a_hard_factor_are_what_the_report_says():
    records = cell([[100.0, 102], [104.0, 106]]) + cell([[200.0, 204], [208.0, 212]], nodes=3)
    (one,) = within(records, {"nodes": 1}, {"nodes": 3})
    report = compare(frame(records), TIME, "nodes", 1, 3, {"workload": "A"})
    assert report is not None
    assert (one.ratio, one.change_percent) == (report.ratio, report.change_percent)
    assert (one.paired, one.starts_a, one.starts_b, one.n_a, one.verdict) == (False, 2, 2, 4, "slower")
    assert one.effect is not None
    assert one.effect.low < one.effect.value
    assert one.sentence.startswith("workload A, b against a: slower by [")


def test_an_easy_factor_is_paired_by_start():
    records = []
    for start, base in enumerate([100.0, 150.0, 80.0], start=1):
        for place, (workload, factor) in enumerate([("A", 1.0), ("C", 1.1)]):
            records.append(record(base * factor + start / 10, workload=workload, start=start, order=place + 1))
    (one,) = within(records, {"workload": "A"}, {"workload": "C"})
    assert (one.paired, one.verdict, one.cell) == (True, "slower", {"nodes": 1})


def test_starts_of_two_stores_are_never_paired_though_their_names_are_equal():
    a = cell([[100.0], [150.0], [80.0]])
    b = cell([[110.0], [165.0], [88.0]])
    (one,) = against(a, b)
    assert (one.paired, one.verdict) == (False, "undecided")
    assert one.more_starts is not None
    assert f"about {one.more_starts} more starts a side would decide" in one.sentence


def test_one_start_a_side_has_no_verdict():
    (one,) = against(cell([[100.0, 101, 99]]), cell([[200.0, 201, 199]]))
    assert (one.verdict, one.ratio.low, one.effect) == ("descriptive", None, None)
    assert "fewer than two starts" in one.sentence


def test_equivalent_within_a_declared_margin_only():
    rng = np.random.default_rng(4)
    records = [drawn(rng, {1: 100.0}, starts=6, trials=2, start_cv=0.005, trial_cv=0.002) for _ in range(2)]
    (without,), (with_margin,), (narrow,) = (against(*records, margin=margin) for margin in (None, 5.0, 0.05))
    assert with_margin.verdict == "equivalent"
    assert "equivalent within 5.0%" in with_margin.sentence
    assert with_margin.equivalence_percent is not None
    assert with_margin.equivalence_percent.confidence == pytest.approx(0.90)
    assert without.verdict == narrow.verdict != "equivalent"


def test_identical_sides_are_called_equivalent_or_undecided_about_nineteen_times_in_twenty():
    rng = np.random.default_rng(11)
    verdicts = []
    for _ in range(60):
        one, other = (drawn(rng, {1: 100.0}, starts=3, trials=1, start_cv=0.03, trial_cv=0.0) for _ in range(2))
        verdicts += [found.verdict for found in against(one, other)]
    assert sum(verdict in ("slower", "faster") for verdict in verdicts) <= 0.15 * len(verdicts)


def test_sides_that_differ_by_the_margin_are_rarely_equivalent():
    """At the edge of the margin the two one-sided tests err one time in twenty."""
    rng = np.random.default_rng(12)
    called = 0
    for _ in range(60):
        one = drawn(rng, {1: 100.0}, starts=5, trials=1, start_cv=0.02, trial_cv=0.0)
        other = drawn(rng, {1: 105.0}, starts=5, trials=1, start_cv=0.02, trial_cv=0.0)
        called += against(one, other, margin=5.0)[0].verdict == "equivalent"
    assert called <= 0.15 * 60


def test_the_margin_is_symmetric_as_a_ratio():
    low, high = limits_percent(25.0)
    assert (1 + low / 100) * (1 + high / 100) == pytest.approx(1)


def test_so_many_more_starts_would_have_decided():
    def ratio(n: int, t: float) -> Estimate:
        half = t * 0.05 * math.sqrt(2 / n)
        return Estimate(
            value=1.05, low=1.05 * math.exp(-half), high=1.05 * math.exp(half), n=2 * n, unit="", method="made"
        )

    more = more_starts(ratio(3, 2.7764), 3, is_paired=False, margin=None)
    assert more is not None
    from scipy import stats

    def reaches(n: int) -> bool:
        return stats.t.ppf(0.975, 2 * n - 2) * 0.05 * math.sqrt(2 / n) < math.log(1.05)

    assert reaches(3 + more)
    assert not reaches(2 + more)


def test_several_treatments_on_a_side_are_refused_with_the_option():
    records = cell([[5.0], [6.0]]) + cell([[5.0], [6.0]], workload="C") + cell([[5.0], [6.0]], nodes=3)
    with pytest.raises(StudyError, match="several treatments") as caught:
        within(records, {"nodes": 1}, {"workload": "C"})
    assert "--" in caught.value.hint


def test_cells_of_one_side_only_are_named():
    a, b = (
        Side(name, frame(rows)) for name, rows in (("a", cell([[1.0]]) + cell([[1.0]], nodes=3)), ("b", cell([[1.0]])))
    )
    found = pair(a, b)
    assert [one[0] for one in found.both] == [{"nodes": 1, "workload": "A"}]
    assert found.only_a == ({"nodes": 3, "workload": "A"},)
    nothing = Side("c", frame(cell([[1.0]], nodes=6)))
    with pytest.raises(StudyError, match="no treatment in common"):
        pair(a, nothing)
