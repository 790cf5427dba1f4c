"""Verdicts of the gate from trials of known values: direction, simultaneous intervals, noise, what would decide."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.comparisons.level_pairs import LevelPair, pair_of
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.comparisons.two_sided import Side, contrasts, pair
from steelyard.analysis.gate import GateCase, case_of, family_confidence, limit_of, overall, verdict_of
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.analysis.inference.power import more_starts_beyond
from steelyard.judging.noise_floor import Spread
from steelyard.judging.t_interval import POWER, chance_beyond
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from tests.unit.analysis.made import cell, drawn, frame

TIME, THROUGHPUT = "execution_time_ms", "throughput_per_s"


def ratio(low: float, high: float) -> Estimate:
    return Estimate(value=(low * high) ** 0.5, low=low, high=high, n=6, unit="", method="made")


def cases_of(records_a, records_b, *, margin=2.0, response=TIME, floors=None) -> list[GateCase]:
    a, b = Side("a", frame(records_a)), Side("b", frame(records_b))
    compared = adjusted(contrasts(a, b, pair(a, b), response, 0.95, margin, floors))
    return [case_of(a, b, contrast, margin, len(compared)) for contrast in compared]


@pytest.mark.parametrize(("response", "low", "high", "verdict"), [
    (TIME, 1.021, 1.05, "worse"), (TIME, 1.01, 1.05, "undecided"), (TIME, 0.98, 1.019, "not worse"),
    (TIME, 0.5, 0.6, "not worse"), (TIME, 1.0, 1.02, "not worse"), (TIME, 1.02, 1.03, "undecided"),
    (THROUGHPUT, 0.95, 0.979, "worse"), (THROUGHPUT, 0.95, 0.99, "undecided"), (THROUGHPUT, 0.985, 1.2, "not worse"),
    ("response_ms_p99", 1.03, 1.2, "worse"), ("response_ms_p99", 0.9, 0.95, "not worse"),
])  # fmt: skip
def test_where_the_interval_lies(response: str, low: float, high: float, verdict: str) -> None:
    assert verdict_of(response, ratio(low, high), ratio(low, high), 2.0) == verdict


def test_worse_needs_the_simultaneous_interval_and_not_worse_the_plain_one() -> None:
    assert verdict_of(TIME, ratio(1.03, 1.05), ratio(1.01, 1.07), 2.0) == "undecided"
    assert verdict_of(TIME, ratio(0.99, 1.01), ratio(0.97, 1.03), 2.0) == "not worse"


def test_without_an_interval_there_is_no_verdict() -> None:
    bare = Estimate(value=2.0, n=2, unit="", method="made")
    assert verdict_of(TIME, bare, bare, 2.0) == "undecided"
    (case,) = cases_of(cell([[100.0], [101.0]]), cell([[200.0], [201.0]]))
    assert (case.verdict, case.blocks) == ("undecided", None)
    assert "fewer than three starts" in case.why


def test_every_response_but_counts_and_jitter_has_a_direction_and_its_limit_lies_there() -> None:
    limits = {name: limit_of(name, 2.0) for name, response in responses.every().items() if response.better != "neither"}
    assert all((limit > 1) == (responses.better_of(name) == "less") for name, limit in limits.items())
    bare = {name for name, response in responses.every().items() if not response.whole} - limits.keys()
    assert bare == {"jitter_per_min"}, "best at 0, and below it as well as above"


def test_the_margin_is_the_same_loss_in_time_and_in_throughput() -> None:
    assert limit_of(TIME, 2.0) * limit_of(THROUGHPUT, 2.0) == pytest.approx(1.0)


def test_the_interval_is_that_of_compare_and_with_several_cells_a_wider_one() -> None:
    rng = np.random.default_rng(3)
    sides = [
        [r for workload in "AC" for r in drawn(rng, {1: mean}, starts=6, trials=2, start_cv=0.01, trial_cv=0.01,
                                               workload=workload)]
        for mean in (100.0, 106.0)
    ]  # fmt: skip
    a, b = Side("a", frame(sides[0])), Side("b", frame(sides[1]))
    compared = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95, 2.0))
    for case, contrast in zip(cases_of(*sides), compared, strict=True):
        assert case.change_percent == contrast.change_percent
        assert case.simultaneous_percent is not None
        assert case.simultaneous_percent.confidence == pytest.approx(family_confidence(0.95, 2)) == pytest.approx(0.975)
        sample = pair_of((a.frame, contrast.a), (b.frame, contrast.b), TIME)
        assert sample is not None
        wide = ratio_of(sample, 0.975)
        assert wide is not None
        assert wide.low is not None
        assert case.simultaneous_percent.low == pytest.approx(100 * (wide.low - 1))


def test_what_the_noise_floor_explains_is_undecided() -> None:
    spread = Spread(
        response=TIME, starts=40, trials=80, between_mean_square=0.02**2, between_degrees=39,
        within_mean_square=0.01**2, within_degrees=40, trials_a_start=1.0,
    )  # fmt: skip
    loud = Floors(own={TIME: spread})
    sides = cell([[100.0], [100.1], [100.2]]), cell([[103.0], [103.1], [103.2]])
    (quiet,), (noisy,) = cases_of(*sides), cases_of(*sides, floors=(loud, loud))
    assert quiet.verdict == "worse"
    assert noisy.verdict == "undecided"
    assert "within the noise of this machine" in noisy.sentence
    assert noisy.floor_percent is not None
    assert quiet.floor_percent is None


def test_the_blocks_that_would_decide() -> None:
    rng = np.random.default_rng(5)
    sides = [drawn(rng, {1: mean}, starts=4, trials=2, start_cv=0.03, trial_cv=0.01) for mean in (100.0, 106.0)]
    (case,) = cases_of(*sides)
    assert case.verdict == "undecided"
    assert case.blocks is not None
    assert case.blocks_s == pytest.approx(case.blocks * 2 * 1000.0, rel=0.1)
    assert f"about {case.blocks + case.starts_a} blocks in a new study" in case.sentence


def test_more_starts_are_just_enough() -> None:
    a, b = [100.0, 103.0, 97.0, 101.0], [104.0, 109.0, 106.0, 102.0]
    sample = LevelPair("start means", "", tuple(a), tuple(b))
    assert sample.gap is not None
    more = more_starts_beyond(sample.gap, 1.02, (0.95, 0.95))
    assert more is not None
    logs = [np.log(a), np.log(b)]
    distance = float(logs[1].mean() - logs[0].mean() - np.log(1.02))

    def chance(extra: int) -> float:
        n = 4 + extra
        variances = [float(one.var(ddof=1)) / n for one in logs]
        degrees = sum(variances) ** 2 / sum(v**2 / (n - 1) for v in variances)
        return chance_beyond(distance, sum(variances) ** 0.5, degrees, 0.95)

    assert chance(more) >= POWER > chance(more - 1)
    assert more_starts_beyond(sample.gap, 1.02, (0.95, 0.99)) > more
    single = LevelPair("start means", "", (1.0,), (2.0,)).gap
    assert single is not None
    assert more_starts_beyond(single, 1.02, (0.95, 0.95)) is None


def test_one_worse_case_is_enough_and_green_needs_all() -> None:
    assert overall(["not worse", "undecided", "worse"]) == "worse"
    assert overall(["not worse", "undecided"]) == "undecided"
    assert overall(["not worse", "not worse"]) == "not worse"
    assert overall([]) == "undecided"
