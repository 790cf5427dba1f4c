"""What a gate over a plan will find: blocks, chances, and the options of `check` that ask for it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy import stats

from steelyard.cli.commands.check import check
from steelyard.model.study import Study
from steelyard.plan import expand, resolution
from steelyard.plan.gate_forecast import MOST_BLOCKS, POWER, GateForecast, _forecast, chance_beyond, forecasts
from steelyard.study import read_text
from tests.unit.cli.screen import printed
from tests.unit.small_study import SMALL_STUDY

GAP = math.log(1.05 / 1.02)


def test_a_chance_grows_with_blocks_and_falls_with_spread() -> None:
    by_blocks = [chance_beyond(n, GAP, 0.03, 0.95) for n in (3, 5, 10, 30, 100)]
    assert by_blocks == sorted(by_blocks)
    by_spread = [chance_beyond(10, GAP, spread, 0.95) for spread in (0.05, 0.03, 0.02, 0.01)]
    assert by_spread == sorted(by_spread)
    assert chance_beyond(2, GAP, 0.01, 0.95) == 0.0, "no interval"
    assert chance_beyond(10, 0.0, 0.01, 0.95) == 0.0, "on the margin"
    assert chance_beyond(10, 1.0, 0.01, 0.95) == pytest.approx(1.0)


def test_many_blocks_are_as_a_normal_distribution_has_it() -> None:
    expected = float(stats.norm.sf(stats.norm.isf(0.025) - GAP / (0.05 / math.sqrt(400))))
    assert chance_beyond(400, GAP, 0.05, 0.95) == pytest.approx(expected, abs=0.002)


def test_pairs_are_a_t_test_of_one_sample() -> None:
    expected = float(stats.nct.sf(stats.t.isf(0.025, 7), 7, GAP / 0.02 * math.sqrt(8)))
    assert chance_beyond(8, GAP, 0.02, 0.95) == pytest.approx(expected)
    far = float(stats.nct.sf(stats.t.isf(0.0005, 2), 2, 45.0))
    assert far < 0.99, "of few blocks the tail is heavy far from the limit, too"
    assert chance_beyond(3, 45.0, math.sqrt(3), 0.999) == pytest.approx(far)


def test_a_loss_that_no_such_gate_finds_has_no_number() -> None:
    """Three blocks, 100 comparisons, a spread of 0.7: even a loss beyond all bounds is found too seldom."""
    few = _forecast("nodes", 100, 3, 0.7, 0.95, 5.0, 2.0, "assumed")
    assert few.found_percent is None
    assert few.power < 0.01


def forecast_of(study: Study) -> tuple[GateForecast, ...]:
    plan = expand(study)
    return forecasts(study, plan, resolution(study, plan), 5.0, 2.0)


def test_a_plan_says_how_many_blocks_it_needs() -> None:
    study = read_text(SMALL_STUDY.replace("starts = 2", "starts = 10"))
    (item,) = forecast_of(study)
    assert (item.factor, item.comparisons, item.blocks, item.cv_source) == ("nodes", 1, 10, "assumed")
    assert item.blocks_needed is not None
    needed = item.blocks_needed
    assert chance_beyond(needed, GAP, item.cv, 0.95) >= POWER > chance_beyond(needed - 1, GAP, item.cv, 0.95)
    assert item.found_percent is not None
    assert chance_beyond(10, math.log((1 + item.found_percent / 100) / 1.02), item.cv, 0.95) == pytest.approx(POWER)
    assert item.power < POWER < 1
    assert item.blocks_to_pass is not None
    assert item.blocks_to_pass > needed, "no loss is nearer to the margin than 5%"


def test_each_cell_is_a_comparison_and_more_of_them_need_more_blocks() -> None:
    alone = read_text(SMALL_STUDY)
    several = read_text(SMALL_STUDY + 'workload = ["ycsb-a", "ycsb-b", "ycsb-c"]\n')
    first, second = (forecast_of(study)[0] for study in (alone, several))
    assert (first.comparisons, second.comparisons) == (1, 3)
    assert (first.blocks_needed or MOST_BLOCKS) < (second.blocks_needed or 0)


def test_each_response_is_a_comparison() -> None:
    alone = read_text(SMALL_STUDY)
    several = read_text(SMALL_STUDY + '[analysis]\nresponses = ["throughput_per_s", "response_ms_p99"]\n')
    first, second = (forecast_of(study)[0] for study in (alone, several))
    assert (first.comparisons, second.comparisons) == (1, 3)
    assert (first.blocks_needed or MOST_BLOCKS) < (second.blocks_needed or 0)


def test_check_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL_STUDY)
    screen = printed(lambda: check(path, tmp_path, gate_percent=5.0, margin_percent=2.0))
    assert "Gate over nodes, 1 comparison, margin 2%" in screen.out
    assert "blocks for 95%" in screen.out
    data = json.loads(printed(lambda: check(path, tmp_path, gate_percent=5.0, margin_percent=2.0, as_json=True)).out)
    assert data["gate"][0]["blocks_needed"] > 2
    assert json.loads(printed(lambda: check(path, tmp_path, as_json=True)).out)["gate"] == []


@pytest.mark.parametrize(("options", "words"), [
    ({"gate_percent": 5.0}, "--gate needs a margin"),
    ({"gate_percent": 1.0, "margin_percent": 2.0}, "the margin of 2% accepts such a loss"),
    ({"margin_percent": 2.0}, "--margin is for --gate"),
])  # fmt: skip
def test_what_check_cannot_forecast(tmp_path: Path, options: dict[str, float], words: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL_STUDY)
    screen = printed(lambda: check(path, tmp_path, **options))
    assert screen.code == 2
    assert words in screen.err
