"""The page on searches: it is what the tool writes, and what it says of the searches that were carried out is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.searches.__main__ import CASES, LEAST_HELD, PLAIN, SEARCHES, kept, outcomes, table, words
from tools.searches.queues import Queue
from tools.searches.real import planted_per_s, real_table, real_words, results, two_nodes_in_turn
from tools.searches.simulate import Outcome, search

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "searches.md"


def test_the_page_has_the_searches_of_the_laboratory_and_keeps_what_it_promises() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert real_table() in text
    assert real_words() in text
    assert "It is kept: of 200 searches per case, at least" in " ".join(text.split())
    held = [int(row.split("|")[4].split(" of ")[0]) for row in text.splitlines() if f" of {SEARCHES} |" in row]
    assert len(held) == len(CASES) + len(PLAIN)
    assert min(held[: len(CASES)]) >= LEAST_HELD


def test_a_small_number_of_searches_is_counted_as_the_page_counts() -> None:
    few = outcomes(search, 4)
    assert table(few).count(" of 4 |") == len(CASES)
    assert "of 4 searches per case" in words(few)
    missed = {case: [Outcome(540.0, 400.0, 390.0, 410.0, 21)] * 4 for case in few}
    assert not kept(missed)
    assert "**It is not kept**" in words(missed)


def test_two_servers_in_turn_are_slower_than_half_of_one_twice_as_fast_and_faster_than_two_apart() -> None:
    twice, apart = Queue(1, 0.01, True), Queue(1, 0.02, True)
    between = two_nodes_in_turn(60.0, 0.02, 0.95)
    assert twice.percentile_s(60.0, 0.95) < between < apart.percentile_s(30.0, 0.95)


@pytest.mark.parametrize("result", results(), ids=lambda result: str(result["kind"]))
def test_what_was_found_lies_near_what_was_planted(result: dict[str, float]) -> None:
    assert result["rate_per_s"] == pytest.approx(planted_per_s(result), rel=0.15)
