"""Recomputation of a trial's search: windows from their responses, decisions and result from the windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from steelyard.judging.capacity_search import decide
from steelyard.judging.dilation import effective_load
from steelyard.judging.search_window import window_of
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.search import NextWindow, Search, SearchResult
from steelyard.model.trial import Responses, TrialRecord
from steelyard.verify.checklist import Book
from steelyard.wire.record import Interval

RELATIVE = 1e-9
"""Relative error of rates: libraries compute quantiles of Student's t with a few last digits of difference."""


def search(record: TrialRecord, where: str, book: Book, seconds_of: Callable[[str], Sequence[Interval]]) -> None:
    """Check a search against the responses of its windows, which are checked against the intervals by themselves, and
    against their seconds."""
    stored = record.search
    if stored is None:
        return
    settings = effective_load(record.settings)
    book.equal("search", where, "search: rules", stored.rules, settings.search_rules())
    for place, window in enumerate(stored.windows):
        # Several windows or one: a single phase has its responses in those of the trial.
        measured = record.phase_responses.get(window.name) or record.responses
        asked = NextWindow(rate_per_s=window.rate_per_s, window_s=window.seconds, settle_s=stored.rules.settle_s)
        again = window_of(
            stored.rules, asked, window.name, measured, window.generator,
            seconds_of(window.name),
        )  # fmt: skip
        if window.begun_at is None:
            again = again.model_copy(update={"begun_at": None})
        book.equal("search", where, f"search: window {window.name}", window, again)
        decision = decide(stored.rules, stored.windows[:place])
        rate = decision.rate_per_s if isinstance(decision, NextWindow) else None
        near = rate is not None and math.isclose(rate, window.rate_per_s, rel_tol=RELATIVE)
        book.check("search", near, where, f"search: rate of {window.name}", window.rate_per_s, rate)
    _result(record, stored, where, book)


def _result(record: TrialRecord, stored: Search, where: str, book: Book) -> None:
    if stored.result is None:
        return
    decision = decide(stored.rules, stored.windows)
    same = isinstance(decision, SearchResult) and _alike(stored.result, decision)
    book.check("search", same, where, "search: result", stored.result, decision)
    rate_per_s = stored.result.rate_per_s if stored.result.outcome == "found" else None
    if record.responses != Responses():
        book.equal("search", where, f"search: {CAPACITY}", record.responses.of(CAPACITY), rate_per_s)


def _alike(stored: SearchResult, again: SearchResult) -> bool:
    rates = (
        (stored.rate_per_s, again.rate_per_s),
        (stored.low_per_s, again.low_per_s),
        (stored.high_per_s, again.high_per_s),
        (stored.knee_per_s, again.knee_per_s),
    )
    near = all(a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=RELATIVE)) for a, b in rates)
    return near and (stored.outcome, stored.windows) == (again.outcome, again.windows)
