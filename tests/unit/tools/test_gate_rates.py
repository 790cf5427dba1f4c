"""The gate's error rates in small: what `check --gate` announces is found, and equal builds are seldom red."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tools.gate_rates.__main__ import page, written
from tools.gate_rates.cases import PROMISE, Planted, Row, count, every, judge, judge_means

STUDIES = 400
PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "gate.md"
ROWS = tuple(every())


@pytest.mark.parametrize("planted", ROWS, ids=lambda planted: f"{planted.family}-{planted.words}-{planted.changes}")
def test_announced_and_promised_rates_hold(planted: Planted) -> None:
    row = count(planted, STUDIES, 7, whole=1)
    low, high = row.ends
    assert low <= planted.share
    assert planted.against == "at most" or planted.share <= high


def test_rows_of_equal_builds_promise_five_per_cent() -> None:
    equal = [row for row in ROWS if not any(row.losses_percent) and row.counted == "worse"]
    assert len(equal) > 5
    assert {row.share for row in equal} == {PROMISE}


@pytest.mark.parametrize("place", [0, 4, 5])
def test_the_short_way_gives_the_verdicts_of_the_whole_one(place: int) -> None:
    for seed in range(3):
        verdicts = [way(ROWS[place], np.random.default_rng(seed)) for way in (judge, judge_means)]
        assert verdicts[0] == verdicts[1]


def test_a_rate_that_was_not_announced_fails() -> None:
    planted = ROWS[0]
    assert Row(planted, 2000, {"worse": round(2000 * planted.share)}).holds
    assert not Row(planted, 2000, {"worse": 1800}).holds
    promised = next(row for row in ROWS if row.against == "at most")
    assert Row(promised, 2000, {"undecided": 2000}).holds
    assert not Row(promised, 2000, {"worse": 150}).holds


def test_the_page_has_every_row_and_none_fails() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == written(text, text.partition("not to be edited -->\n\n")[2].partition("\n\n<!-- end of rates")[0])
    lines = [line for line in text.splitlines() if re.search(r"\| (holds|\*\*fails\*\*) \|$", line)]
    assert len(lines) == len(ROWS)
    for line, planted in zip(lines, ROWS, strict=True):
        assert line.startswith(
            f"| {planted.words} | {planted.changes} | {planted.margin_percent:g}% | {planted.blocks} |"
        )
        assert line.endswith("| holds |")


def test_the_page_is_made_of_the_counts() -> None:
    text = page([Row(ROWS[0], 100, {"worse": 97})], 100, 1)
    assert "97.2% red" in text
    assert "| 97.0% [" in text
