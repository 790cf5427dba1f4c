"""How many more starts would decide, against statsmodels' power; how long they take; Holm and p against scipy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from steelyard.analysis.comparisons import forecast
from steelyard.analysis.comparisons.forecast import block_s
from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.inference.multiplicity import holm, survives
from steelyard.analysis.inference.power import More, more_starts
from steelyard.analysis.statistics.comparison import comparisons
from steelyard.judging import t_interval
from steelyard.model.look import Look
from tests.unit.analysis.made import VOIDED, cell, frame, record

LOGS = st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=6)


def apart(a: Sequence[float], b: Sequence[float]) -> LevelPair:
    return LevelPair("start means", "", tuple(a), tuple(b))


def paired(a: Sequence[float], b: Sequence[float]) -> LevelPair:
    return LevelPair("start means", "start", tuple(a), tuple(b))


def sides(change: float, sd: float, n: int) -> tuple[list[float], list[float]]:
    """Two sides whose logarithms have exactly this difference of means and this standard deviation each."""
    raw = np.arange(n) - (n - 1) / 2
    logs = raw / np.std(raw, ddof=1) * sd
    return np.exp(logs).tolist(), np.exp(logs + change).tolist()


@pytest.mark.parametrize(("change", "sd"), [(0.05, 0.05), (0.03, 0.05), (-0.02, 0.04), (0.1, 0.3)])
def test_the_number_of_starts_is_that_of_statsmodels(change: float, sd: float) -> None:
    more = more_starts(apart(*sides(change, sd, 4)).gap, None)
    wanted = TTestIndPower().solve_power(effect_size=abs(change) / sd, alpha=0.05, power=t_interval.POWER)
    assert more is not None
    assert 4 + more.starts == int(np.ceil(wanted))
    assert more.percent == pytest.approx(100 * abs(np.expm1(change)))
    assert more.shows == "change"


def test_the_number_of_pairs_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(1)
    base = rng.lognormal(0, 0.5, 5)
    gaps = np.array([-0.09, 0.11, 0.02, 0.06, 0.0])
    more = more_starts(paired(base.tolist(), (base * np.exp(gaps)).tolist()).gap, None)
    wanted = TTestPower().solve_power(effect_size=gaps.mean() / gaps.std(ddof=1), alpha=0.05, power=t_interval.POWER)
    assert more is not None
    assert 5 + more.starts == int(np.ceil(wanted))


def test_the_chance_is_what_a_simulation_finds() -> None:
    """The number that is advised decides in 80% of new studies; the expected interval alone would in about half."""
    rng = np.random.default_rng(7)
    change, sd = 0.05, 0.04
    more = more_starts(apart(*sides(change, sd, 4)).gap, None)
    assert more is not None
    n = 4 + more.starts
    a, b = rng.normal(0, sd, (4000, n)), rng.normal(change, sd, (4000, n))
    decided = float(np.mean(stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue < 0.05))
    assert decided == pytest.approx(TTestIndPower().power(change / sd, n, 0.05), abs=0.02)
    assert t_interval.POWER - 0.02 < decided < t_interval.POWER + 0.06
    halves = next(k for k in range(3, 99) if stats.t.ppf(0.975, 2 * k - 2) * sd * np.sqrt(2 / k) < change)
    at_half = TTestIndPower().power(change / sd, halves, 0.05)
    assert 0.45 < at_half < 0.6
    assert halves < n


@pytest.mark.parametrize(("in_pairs", "change"), [(False, 0.0), (True, 0.0), (False, 0.02)])
def test_the_chance_of_equivalence_is_what_a_simulation_finds(in_pairs: bool, change: float) -> None:
    rng = np.random.default_rng(8)
    sd, bound = 0.03, np.log1p(0.05)
    more = more_starts(apart(*sides(change, sd, 4)).gap, 5.0)
    assert more is not None
    assert (more.shows, more.percent) == ("equivalence", 5.0)
    n = 4 + more.starts
    spread = sd * np.sqrt(2)
    gaps = rng.normal(change, spread, (400, n))
    if in_pairs:
        p = [ttost_paired(one, np.zeros(n), -bound, bound)[0] for one in gaps]
    else:
        a, b = rng.normal(0, sd, (400, n)), rng.normal(change, sd, (400, n))
        p = [ttost_ind(y, x, -bound, bound, usevar="unequal")[0] for x, y in zip(a, b, strict=True)]
    degrees = n - 1 if in_pairs else 2 * n - 2
    chance = t_interval.chance_of_equivalence(change, bound, spread / np.sqrt(n), degrees, 0.95)
    assert float(np.mean(np.array(p) < 0.05)) == pytest.approx(chance, abs=0.06)
    assert in_pairs or chance >= t_interval.POWER


def test_nothing_that_can_be_advised() -> None:
    assert more_starts(apart([1.0], [2.0, 3.0]).gap, None) is None
    assert apart([1.0, 0.0], [2.0, 3.0]).gap is None
    assert more_starts(apart([1.0, 2.0], [1.0, 2.0]).gap, None) is None
    assert more_starts(paired([1.0, 1.0], [1.0, 1.0]).gap, None) is None


@settings(max_examples=60, deadline=None)
@given(LOGS, LOGS)
def test_p_is_below_alpha_where_the_interval_leaves_no_change_out(one: list[float], other: list[float]) -> None:
    pair = apart(*([float(np.exp(x)) for x in side] for side in (one, other)))
    ratio, p = ratio_of(pair, 0.95), pair.p
    assert ratio is not None
    assert (p is None) == (ratio.low is None)
    if p is None:
        return
    if ratio.low is not None and ratio.high is not None and abs(p - 0.05) > 1e-6 and np.ptp(one) + np.ptp(other) > 1e-9:
        assert (p < 0.05) == (not ratio.low <= 1 <= ratio.high)


def test_p_of_sides_that_do_not_vary() -> None:
    assert apart((2.0, 2.0), (2.0, 2.0)).p is None
    assert apart((0.1, 0.1, 0.1), (3.0, 3.0, 3.0)).p is None
    assert paired((2.0, 4.0, 5.0), (3.0, 6.0, 7.5)).p is None
    assert apart((2.0, 2.0, 2.1), (-3.0, 3.0, 3.1)).p is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_holm_is_that_of_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(list(multipletests(p, method="holm")[1]))
    assert holm([None, *p])[0] is None


def test_only_a_difference_can_fail_to_survive() -> None:
    assert survives("slower", 0.04, 0.95) is True
    assert survives("slower", 0.06, 0.95) is False
    assert survives("undecided", 0.5, 0.95) is None


def test_a_block_takes_what_its_starts_took_whatever_came_between_two_evenings() -> None:
    rows, at = [], 0.0
    for start in range(1, 5):
        for nodes, lasts in ((1, 100.0), (3, 300.0)):
            at += 20.0 + (50_000.0 if start == 3 and nodes == 1 else 0.0)
            for order in (1, 2):
                verdict = VOIDED if order == 2 and start == 2 else None
                more = {"verdict": verdict} if verdict else {}
                one = record(5.0, nodes=nodes, start=start, order=order, replicate=order, begun_s=at, **more)
                rows.append(one.model_copy(update={"ended_s": at + lasts / 2}))
                at += lasts / 2
    assert block_s(frame(rows)) == pytest.approx(400 + 2 * 20)
    assert block_s(frame(rows[:2])) is None


def test_the_comparisons_of_a_report_are_one_family() -> None:
    values = [99.0, 100.0, 101.0, 100.5]
    rows = [one for name in "ABCDEFGH" for one in cell([[x] for x in values], workload=name)]
    rows += [
        one
        for name in "ABCDEFGH"
        for one in cell([[x + 3.2 * (name == "A")] for x in values[::-1]], workload=name, nodes=3)
    ]
    found = comparisons(frame(rows), "execution_time_ms", margin_percent=3.0)
    assert {one.family for one in found} == {8}
    assert [one.p_holm for one in found] == pytest.approx(
        list(multipletests([one.p for one in found], method="holm")[1])
    )
    assert (found[0].verdict, found[0].survives_holm) == ("slower", False)
    assert found[0].sentence.endswith(f"comparisons (p {found[0].p:.2g}, corrected {found[0].p_holm:.2g})")
    same = found[1]
    assert (same.verdict, same.survives_holm, same.more_starts) == ("equivalent", False, None)
    assert [one.tost_p_holm for one in found] == pytest.approx(
        list(multipletests([one.tost_p for one in found], method="holm")[1])
    )
    assert "equivalent within 3%" in same.sentence
    assert same.sentence.endswith(f"comparisons (p {same.tost_p:.2g}, corrected {same.tost_p_holm:.2g})")
    (wide, *_) = comparisons(frame(rows[:4] + rows[32:36]), "execution_time_ms", margin_percent=1.0)
    assert wide.verdict == "slower"
    undecided = comparisons(frame(rows), "execution_time_ms", margin_percent=1.0)[1]
    assert undecided.more_starts is not None
    assert undecided.more_s == pytest.approx(undecided.more_starts * block_s(frame(rows)))
    assert "would show that it lies within 1%" in undecided.sentence


def test_the_words_of_a_forecast() -> None:
    more = More(starts=14, percent=3.04, shows="change")
    in_plan = Look(done=4, planned=20, missing=32)
    told = forecast.Forecast(more, 729.0, 4, in_plan)
    assert told.short() == "for 3% 14 more blocks (about 2 h 50 min)"
    assert told.words() == ("about 14 more blocks (about 2 h 50 min) would detect a change of 3%, with a chance of 80%")
    one_more = forecast.Forecast(More(starts=1, percent=5.0, shows="equivalence"), None, 4, in_plan)
    assert one_more.short() == "for ±5% 1 more block"
    assert one_more.words() == "about 1 more block would show that it lies within 5%, with a chance of 80%"
    assert forecast.Forecast(None, 1.0).words() == "not even 1,000 more blocks would decide"


def test_a_forecast_says_what_a_further_look_costs() -> None:
    more = More(starts=8, percent=3.04, shows="change")
    spent = forecast.Forecast(more, 600.0, 3, Look(done=3, planned=3))
    assert spent.short() == "for 3% 11 blocks in a new study (about 1 h 50 min)"
    assert spent.words() == (
        "about 11 blocks in a new study (about 1 h 50 min) would detect a change of 3%, with a chance of 80%; "
        "this study is looked at once: with blocks added to it no verdict would be final"
    )
    several = Look(several=True, confidence=0.975, done=3, planned=3)
    assert forecast.Forecast(more, 600.0, 3, several).words() == (
        "about 8 more blocks (about 80 min) would detect a change of 3%, with a chance of 80%; that is a "
        "further look, at 98.75%"
    )
