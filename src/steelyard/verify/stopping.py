"""Verification of the stopping rule's decisions, from the trials on disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from steelyard.events.kept import SessionBegan, StoppingJudged
from steelyard.format import treatment_label
from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping import Decision, decide, not_needed, rule_of
from steelyard.model.errors import StoreError
from steelyard.model.trial import TrialRecord
from steelyard.store import layout
from steelyard.store.read import Store
from steelyard.verify.checklist import Book
from steelyard.verify.journal_and_plan import Key, entries_of

EARLIER = "decisions of the stopping rule that were made on an earlier form of the plan"
SAME_WIDTH = 1e-9
"""Relative tolerance of half widths: libraries differ in the last digits of Student's quantile."""


def stopping(folder: Path, records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> frozenset[str]:
    """Recompute every decision in the journal from the trials of its blocks, and remark on trials after the end.
    Returns the ids of planned trials that the rule made unnecessary. Unreadable files are findings of other checks."""
    store = Store(folder)
    try:
        rule, plan = rule_of(store.study), store.plan
    except (OSError, StoreError, ValidationError, ValueError):
        return frozenset()
    if rule is None or plan is None:
        return frozenset()
    attempts = [record for record, _ in records.values()]
    for number, decision, planned in _decisions(folder):
        if planned not in (None, len(plan.trials)):
            book.skip(EARLIER)
            continue
        _same(decision, decide(plan, _known_then(attempts, decision), decision.rule), number, book)
    now = decide(plan, attempts, rule)
    for record, where in records.values():
        if not now.go_on and record.block > now.blocks:
            what = f"block {record.block}; by its rule the study ends after block {now.blocks}"
            book.remark("until", where, "a trial after the end of the study", what)
    return frozenset(trial.id for trial in not_needed(plan, attempts, now))


def _known_then(records: Sequence[TrialRecord], decision: Decision) -> list[TrialRecord]:
    """The attempts that a decision is based on: those in its blocks, for each trial up to the attempt that settled it.
    Later attempts, made after `limits.attempts` was raised, did not exist yet."""
    known: list[TrialRecord] = []
    for attempts in attempts_by_id(one for one in records if one.block <= decision.blocks).values():
        ordered = sorted(attempts, key=lambda one: one.attempt)
        last = next((n for n in range(1, len(ordered)) if settled(ordered[:n], decision.rule.attempts)), len(ordered))
        known += ordered[:last]
    return known


def _decisions(folder: Path) -> Iterator[tuple[int, Decision, int | None]]:
    """Decisions in the journal: line number, decision, and the number of planned trials at that time if known."""
    planned: int | None = None
    for entry in entries_of(folder):
        match entry.event:
            case SessionBegan(total=total):
                planned = total
            case StoppingJudged(decision=decision):
                yield entry.number, decision, planned


def _same(decision: Decision, again: Decision, number: int, book: Book) -> None:
    line = f"line {number}: after block {decision.blocks}"
    treatments = [cell.treatment for cell in again.cells]
    if [cell.treatment for cell in decision.cells] != treatments or decision.cap != again.cap:
        book.skip(EARLIER)
        return
    book.equal("until", layout.EVENTS, f"{line}, the decision", decision.why, again.why)
    book.equal("until", layout.EVENTS, f"{line}, blocks that were whole", decision.blocks, again.blocks)
    for before, now in zip(decision.cells, again.cells, strict=True):
        names = treatment_label(before.treatment)
        book.equal("until", layout.EVENTS, f"{line}, starts of {names}", before.n, now.n)
        mine, theirs = before.half_width_percent, now.half_width_percent
        alike = mine == theirs if mine is None or theirs is None else math.isclose(mine, theirs, rel_tol=SAME_WIDTH)
        book.check("until", alike, layout.EVENTS, f"{line}, half width of {names}", mine, theirs)
