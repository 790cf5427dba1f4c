"""Trends within starts beside a difference: how far they move a level, in every table that judges one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons import side_trends
from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.narrative.answer_table import of_main_effects
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.main_effect import main_effects
from steelyard.analysis.statistics.overall import Overall
from steelyard.analysis.statistics.trend import Trend
from steelyard.judging.noise_floor import Spread
from steelyard.report.data.presentation import view
from steelyard.report.tables.comparisons import comparisons
from tests.unit.analysis.made import cell, frame, record, study
from tests.unit.analysis.statistics.test_overall import of_fraction

TIME = "execution_time_ms"
LEVEL = np.ones(9)
WARM = np.asarray([2.0, 2 ** (2 / 3), 2 ** (1 / 3), *[1.0] * 6])
"""A warm-up by a factor of 2 over the first three of nine trials."""


def starts(mean: float, shapes: Sequence[np.ndarray], seed: int) -> list[list[float]]:
    """One start for each shape, with 1% noise between starts and between trials."""
    rng = np.random.default_rng(seed)
    return [
        [float(one) for one in mean * shape * math.exp(rng.normal(0, 0.01)) * np.exp(rng.normal(0, 0.01, 9))]
        for shape in shapes
    ]


def two_sizes(shapes: Sequence[np.ndarray], ratio: float) -> Results:
    """Execution times of 1 and 3 nodes; the starts of 3 nodes have these shapes."""
    one, three = starts(100, [LEVEL] * len(shapes), 1), starts(100 * ratio, shapes, 2)
    return analyse([*cell(one, nodes=1), *cell(three, nodes=3)], study(factors={"nodes": (1, 3)}), seed=1)


def trend(start: str, *, count: int = 1, factor: float = 0.5, nodes: int = 3) -> Trend:
    return Trend(
        treatment={"nodes": nodes}, start=start, series="trials", response=TIME, n=9 * count, starts=count,
        factor=factor, verdict="warming", detail="",
    )  # fmt: skip


def test_a_trend_in_one_start_of_ten_moves_its_level_by_a_tenth_and_is_named() -> None:
    rows = frame([*cell([[100.0]] * 10, nodes=1), *cell([[120.0]] * 10, nodes=3)])
    for found, shift in (
        ([trend("b04-n3")], math.log(2) / 10),
        ([trend("b04-n3"), trend("b07-n3", factor=0.25)], math.log(8) / 10),
        ([trend("10 starts", count=10), trend("b04-n3", factor=0.1)], math.log(2)),
        ([trend("b04-n1", nodes=1)], math.log(2) / 10),
        ([], 0.0),
    ):
        sides = side_trends.of_levels(rows, TIME, "nodes", (1, 3), found, {"workload": "A"})
        assert sides.shift == pytest.approx(shift)
        assert all(one.start in sides.words for one in found if one.starts == 1 and len(found) == 1)
    sides = side_trends.of_levels(rows, TIME, "nodes", (1, 3), [trend("b04-n3")], {"workload": "A"})
    assert sides.words == "3 nodes in b04-n3, 1 of 10 starts, still warming: by a factor of 0.500 in all"


def test_a_difference_that_one_warming_start_of_ten_cannot_make_keeps_its_verdict() -> None:
    (single,) = two_sizes([WARM, *[LEVEL] * 9], 1.25).of(Comparison)
    assert (single.verdict, single.within_trend) == ("slower", False)
    assert "3 nodes in b01-n3, 1 of 10 starts, still warming" in single.sentence
    (every,) = two_sizes([WARM] * 10, 1.25).of(Comparison)
    assert (every.verdict, every.within_trend) == ("undecided", True)
    assert "3 nodes still warming" in every.sentence


def test_every_table_says_the_same_of_one_pair() -> None:
    """The answer, every pair of levels, and every comparison."""
    records = [
        *cell(starts(100, [LEVEL] * 3, 1), nodes=1), *cell(starts(101, [LEVEL] * 3, 5), nodes=2),
        *cell(starts(105, [WARM] * 3, 3), nodes=3),
    ]  # fmt: skip
    results = analyse(records, study(factors={"nodes": (1, 2, 3)}), seed=1)
    assert results.answer_table is not None
    assert results.answer_pairs is not None
    pairs = {(row.baseline, row.level): row for row in results.answer_pairs.rows}
    table = comparisons(view(results))
    assert table is not None
    verdicts = [row[-1].text for row in table.rows]
    for row, shown in zip(results.answer_table.rows[1:], verdicts, strict=True):
        pair = pairs[row.baseline, row.level]
        assert (pair.verdict_text, shown) == (row.verdict_text, row.verdict_text)
        assert pair.why == row.why
    assert pairs[1, 3].verdict_text == pairs[2, 3].verdict_text == "undecided (within trend)"
    assert pairs[1, 2].to_decide


def test_the_mean_over_all_other_factors_is_held_against_trends_too() -> None:
    records = [
        record(value, nodes=nodes, workload=workload, start=start, order=2 * place + second, replicate=place)
        for nodes, shape, mean in ((1, LEVEL, 100.0), (3, WARM, 105.0))
        for start, values in enumerate(starts(mean, [shape] * 4, nodes), start=1)
        for place, value in enumerate(values, start=1)
        for second, workload in enumerate("AC")
    ]
    results = analyse(records, study(), seed=1)
    assert {one.within_trend for one in results.of(Comparison)} == {True}
    (mean,) = results.of(Overall)
    assert (mean.verdict, mean.within_trend, mean.within_noise) == ("undecided", True, False)
    assert ": undecided: execution time +" in mean.sentence
    assert mean.sentence.endswith(f"{mean.trend}, which may be all of the difference")


def test_the_effects_of_a_fraction_are_held_against_trends_too() -> None:
    rows, fraction = of_fraction(0.01, np.random.default_rng(3), starts=4)
    effects = main_effects(rows, TIME, fraction)
    found = [trend("4 starts", count=4, factor=0.25, nodes=2)]
    nodes, threads, _ = (effect.judged(rows, Floors(), found) for effect in effects)
    assert effects[0].verdict == "faster"
    assert (nodes.verdict, nodes.within_trend) == ("undecided", True)
    assert (threads.verdict, threads.within_trend) == ("slower", False)  # its levels share their starts
    assert threads.trend == nodes.trend == "2 nodes still warming: by a factor of 0.250 in all"
    row, other = of_main_effects([nodes, threads], study()).rows
    assert row.verdict_text == "undecided (within trend)"
    assert row.why.startswith(f"{nodes.trend}, which may be all of the difference")
    assert (other.verdict_text, other.why.partition("; ")[0]) == ("slower", threads.trend)


def test_the_effects_of_a_fraction_that_lie_in_the_noise_say_so_in_the_answer() -> None:
    rows, fraction = of_fraction(0.001, np.random.default_rng(3), starts=4)
    spread = Spread(
        response=TIME, starts=40, trials=80, between_mean_square=1.0, between_degrees=39, within_mean_square=1.0,
        within_degrees=40, trials_a_start=1.0,
    )  # fmt: skip
    effects = [effect.judged(rows, Floors(own={TIME: spread})) for effect in main_effects(rows, TIME, fraction)]
    nodes = of_main_effects(effects, study()).rows[0]
    assert nodes.ratio is not None
    assert nodes.ratio.high is not None
    assert nodes.ratio.high < 1
    assert (nodes.verdict, nodes.verdict_text) == ("undecided", "undecided (within noise)")
    assert nodes.why.startswith("within the ")
    assert "% that 95% of comparisons of identical systems stay below" in nodes.why
