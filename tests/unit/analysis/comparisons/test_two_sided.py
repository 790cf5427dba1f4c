"""Two sides against each other: what is paired, what is decided, how much more would decide."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.comparisons.two_sided import Side, contrasts, limits_percent, pair
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.analysis.statistics.comparison import compare, comparisons
from steelyard.analysis.statistics.trend import Trend
from steelyard.cli.terminal.comparison_table import verdict_of
from steelyard.judging.noise_floor import Spread
from steelyard.model.errors import StudyError
from tests.unit.analysis.made import cell, drawn, frame, record

TIME = "execution_time_ms"


def against(records_a, records_b, *, margin=None, fixed_a=None, fixed_b=None):
    a, b = Side("a", frame(records_a), fixed_a or {}), Side("b", frame(records_b), fixed_b or {})
    return adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, margin))


def within(records, fixed_a, fixed_b, margin=None):
    rows = frame(records)
    a, b = Side("a", rows, fixed_a), Side("b", rows, fixed_b)
    return adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, margin))


def test_two_treatments_of_a_hard_factor_are_what_the_report_says():
    records = cell([[100.0, 102], [104.0, 106], [102, 104]]) + cell([[200.0, 204], [206.0, 212], [208, 208]], nodes=3)
    (one,) = within(records, {"nodes": 1}, {"nodes": 3})
    report = compare(frame(records), TIME, "nodes", 1, 3, {"workload": "A"})
    assert report is not None
    assert (one.ratio, one.change_percent) == (report.ratio, report.change_percent)
    assert (one.paired, one.starts_a, one.starts_b, one.n_a, one.verdict) == (True, 3, 3, 6, "slower")
    assert one.effect is not None
    assert one.effect.low < one.effect.value
    assert one.sentence.startswith("workload A, b against a: slower: execution time 2.00 times as long [")


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
    assert one.more is not None
    assert one.more_s == pytest.approx(one.more.starts * 2 * 1000.0)
    assert f"about {one.more.starts + 3} blocks in a new study (about " in one.sentence
    assert "would detect a change of 10%, with a chance of 80%" in one.sentence


def test_one_start_a_side_has_no_verdict():
    (one,) = against(cell([[100.0, 101, 99]]), cell([[200.0, 201, 199]]))
    assert (one.verdict, one.ratio.low, one.effect) == ("descriptive", None, None)
    assert "fewer than three starts" in one.sentence


def test_equivalent_within_a_declared_margin_only():
    rng = np.random.default_rng(4)
    records = [drawn(rng, {1: 100.0}, starts=6, trials=2, start_cv=0.005, trial_cv=0.002) for _ in range(2)]
    (without,), (with_margin,), (narrow,) = (against(*records, margin=margin) for margin in (None, 5.0, 0.05))
    assert with_margin.verdict == "equivalent"
    assert "equivalent within 5%" in with_margin.sentence
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


def test_a_verdict_stands_by_its_interval_and_says_when_holm_would_take_it_back():
    values = [99.0, 100.0, 101.0, 100.5]
    a = [one for name in "ABCDEFGH" for one in cell([[x] for x in values], workload=name)]
    b = [one for name in "ABCDEFGH" for one in cell([[x + 2.2 * (name == "A")] for x in values], workload=name)]
    found = against(a, b)
    slower = found[0]
    assert (slower.verdict, slower.family, slower.survives_holm) == ("slower", 8, False)
    assert slower.p < 0.05 < slower.p_holm
    assert slower.p_holm == pytest.approx(8 * slower.p)
    assert "would not survive Holm's correction over 8 comparisons" in slower.sentence
    assert {one.survives_holm for one in found[1:]} == {None}
    more_nodes = cell([[x + 2.2] for x in values], nodes=3)
    (alone,) = within([*a[:4], *more_nodes], {"nodes": 1}, {"nodes": 3})
    assert (alone.family, alone.survives_holm, alone.p) == (1, True, alone.p_holm)


def test_an_equivalence_is_held_against_its_own_two_tests():
    rng = np.random.default_rng(4)
    records = [drawn(rng, {1: 100.0}, starts=6, trials=2, start_cv=0.005, trial_cv=0.002) for _ in range(2)]
    (one,) = against(*records, margin=5.0)
    assert (one.verdict, one.survives_holm, one.family) == ("equivalent", True, 1)
    assert one.tost_p == one.tost_p_holm < 0.001


def floors(within: float, between: float) -> Floors:
    """Standard deviations of logarithms of identical systems, one trial a start, well known."""
    spread = Spread(
        response=TIME, starts=40, trials=80, between_mean_square=between**2, between_degrees=39,
        within_mean_square=within**2, within_degrees=40, trials_a_start=1.0,
    )  # fmt: skip
    return Floors(own={TIME: spread})


def test_a_difference_within_the_noise_floor_is_undecided():
    records = cell([[100.0], [100.1], [100.2]]), cell([[101.0], [101.1], [101.2]])
    a, b = Side("a", frame(records[0])), Side("b", frame(records[1]))
    for loud, verdict in ((floors(0.01, 0.02), "undecided"), (floors(1e-4, 2e-4), "slower")):
        (one,) = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, None, (loud, loud)))
        assert (one.verdict, one.within_noise) == (verdict, verdict == "undecided")
        assert one.floor_percent is not None
        assert one.survives_holm is (None if one.within_noise else True)
        assert ("within the noise of this machine" in one.sentence) == one.within_noise
    (unknown,) = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, None, (loud, Floors())))
    assert (unknown.verdict, unknown.floor_percent) == ("slower", None)
    (margin,) = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, 5.0, (floors(0.01, 0.02), floors(0.01, 0.02))))
    assert margin.verdict == "equivalent"


def test_several_treatments_on_a_side_are_refused_with_the_option():
    records = cell([[5.0], [6.0]]) + cell([[5.0], [6.0]], workload="C") + cell([[5.0], [6.0]], nodes=3)
    with pytest.raises(StudyError, match="several treatments") as caught:
        within(records, {"nodes": 1}, {"workload": "C"})
    assert "--" in caught.value.hint


def test_a_few_equal_values_are_no_proof_that_nothing_varies():
    (one,) = against(cell([[100.0]] * 3), cell([[101.6]] * 3), margin=5.0)
    assert (one.ratio.low, one.p, one.verdict) == (None, None, "descriptive")
    assert one.why == "nothing varies between starts, so there is neither interval nor verdict"
    assert (one.tost_p, one.survives_holm) == (None, None)
    (reported,) = comparisons(frame([*cell([[100.0]] * 3), *cell([[101.6]] * 3, nodes=3)]), TIME, margin_percent=5.0)
    assert (reported.ratio.low, reported.p, reported.verdict) == (None, None, "descriptive")
    assert "nothing varies between starts" in reported.sentence


def test_a_level_without_a_trial_is_refused_with_those_that_have_one():
    planned = {"nodes": (1, 3, 6), "workload": ("A",)}
    tried = TrialFrame.build([*cell([[100.0]]), *cell([[90.0]], nodes=6)], planned, ("nodes",), 0)
    with pytest.raises(StudyError, match="has no trial of 3 nodes") as caught:
        pair(Side("a", tried, {"nodes": 1}), Side("b", tried, {"nodes": 3}))
    assert caught.value.hint == "it has nodes 1 6, workload A"


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


def warming(factor: float, *, treatment) -> Trend:
    return Trend(
        treatment=treatment, start="3 starts", series="trials", response=TIME, n=9, starts=3, factor=factor,
        verdict="warming", detail="",
    )  # fmt: skip


def test_a_side_that_still_warms_up_leaves_a_difference_undecided_as_in_the_report():
    a, b = frame(cell([[100.0], [101.0], [99.0]])), frame(cell([[120.0], [121.0], [119.0]]))
    sides = Side("a", a), Side("b", b, trends=[warming(0.5, treatment={"nodes": 1})])
    (found,) = adjusted(contrasts(*sides, pair(*sides), TIME, 0.95))
    assert (found.verdict, found.within_trend, found.within_noise) == ("undecided", True, False)
    assert found.trend == "b still warming: by a factor of 0.500 in all"
    assert found.sentence.endswith(f"b against a: undecided: {found.trend}, which may be all of the difference")
    assert verdict_of(found) == "undecided; within a trend"
    sides = Side("a", a), Side("b", b, trends=[warming(0.99, treatment={"nodes": 1})])
    (found,) = adjusted(contrasts(*sides, pair(*sides), TIME, 0.95))
    assert (found.verdict, found.within_trend) == ("slower", False)
    assert found.sentence.endswith("; b still warming: by a factor of 0.990 in all")


def test_sides_that_share_their_starts_share_their_trend():
    records = []
    for start, base in enumerate([100.0, 150.0, 80.0], start=1):
        for place, (workload, factor) in enumerate([("A", 1.0), ("C", 1.1)]):
            records.append(record(base * factor + start / 10, workload=workload, start=start, order=place + 1))
    rows = frame(records)
    sides = [Side(name, rows, {"workload": name}, [warming(0.5, treatment={"nodes": 1})]) for name in ("A", "C")]
    (found,) = adjusted(contrasts(*sides, pair(*sides), TIME, 0.95))
    assert (found.verdict, found.within_trend) == ("slower", False)
    assert found.sentence.endswith("; both sides still warming: by a factor of 0.500 in all")
