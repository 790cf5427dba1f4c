"""Whether a study ended where its stopping rule says, by the trials as they stand on disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from steelyard.format import treatment_label
from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.stopping import decide, not_needed
from steelyard.judging.stopping_rule import Decision, rule_of
from steelyard.model.errors import StoreError
from steelyard.model.trial import TrialRecord
from steelyard.store import journal, layout
from steelyard.store.read import Store
from steelyard.verify.checklist import Book
from steelyard.verify.journal_and_plan import Key

EARLIER = "decisions of the stopping rule that were made on an earlier form of the plan"
SAME_WIDTH = 1e-9
"""Half widths that differ by a smaller share are the same: Student's quantile is another library's last digit."""


def stopping(folder: Path, records: Mapping[Key, tuple[TrialRecord, str]], book: Book) -> frozenset[str]:
    """Every decision that the journal says, again from the trials of its blocks; and trials after the end. Gives the
    ids of the planned trials that the rule made unnecessary. What cannot be read is found elsewhere."""
    store = Store(folder)
    try:
        rule, plan = rule_of(store.study), store.plan
    except (OSError, StoreError, ValidationError, ValueError):
        return frozenset()
    if rule is None or plan is None:
        return frozenset()
    found = [record for record, _ in records.values()]
    for number, said, planned in _said(folder):
        if planned not in (None, len(plan.trials)):
            book.skip(EARLIER)
            continue
        _same(said, decide(plan, _known_then(found, said), said.rule), number, book)
    now = decide(plan, found, rule)
    for record, where in records.values():
        if not now.go_on and record.block > now.blocks:
            told = f"block {record.block}; by its rule the study ends after block {now.blocks}"
            book.remark("until", where, "a trial after the end of the study", told)
    return frozenset(trial.id for trial in not_needed(plan, found, now))


def _known_then(records: Sequence[TrialRecord], said: Decision) -> list[TrialRecord]:
    """The attempts that a decision rests on: of its blocks, of each trial up to the one that settled it. Those that
    came later, because `limits.attempts` was raised, were not known."""
    known: list[TrialRecord] = []
    for attempts in attempts_by_id(one for one in records if one.block <= said.blocks).values():
        ordered = sorted(attempts, key=lambda one: one.attempt)
        last = next((n for n in range(1, len(ordered)) if settled(ordered[:n], said.rule.attempts)), len(ordered))
        known += ordered[:last]
    return known


def _said(folder: Path) -> Iterator[tuple[int, Decision, int | None]]:
    """Lines of the journal that tell a decision, with how many trials the plan had then, if that is told too."""
    path = folder / layout.EVENTS
    planned: int | None = None
    for entry in journal.entries(path.read_text(encoding="utf-8") if path.is_file() else ""):
        match entry.event:
            case journal.SessionBegan(total=total):
                planned = total
            case journal.StoppingJudged(decision=decision):
                yield entry.number, decision, planned


def _same(said: Decision, again: Decision, number: int, book: Book) -> None:
    line = f"line {number}: after block {said.blocks}"
    treatments = [cell.treatment for cell in again.cells]
    if [cell.treatment for cell in said.cells] != treatments or said.cap != again.cap:
        book.skip(EARLIER)
        return
    book.equal("until", layout.EVENTS, f"{line}, the decision", said.why, again.why)
    book.equal("until", layout.EVENTS, f"{line}, blocks that were whole", said.blocks, again.blocks)
    for before, now in zip(said.cells, again.cells, strict=True):
        names = treatment_label(before.treatment)
        book.equal("until", layout.EVENTS, f"{line}, starts of {names}", before.n, now.n)
        mine, theirs = before.half_width_percent, now.half_width_percent
        alike = mine == theirs if mine is None or theirs is None else math.isclose(mine, theirs, rel_tol=SAME_WIDTH)
        book.check("until", alike, layout.EVENTS, f"{line}, half width of {names}", mine, theirs)
