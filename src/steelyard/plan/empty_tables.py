"""Reads of rows that were never written: tables that the data state leaves empty, or that are never filled.

A read of a key whose row must be there and is not counts as `not_found`, and more of these than
`limits.not_found_fraction` void a trial. What an order reads and writes follows from its operations alone, so it is
known before anything starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steelyard.format import percent
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities, distinct
from steelyard.system.base import Existing
from steelyard.wire.order import Jobs, Requests, Ycsb
from steelyard.wire.program import NewKeys, Program, StatementSpec
from steelyard.workload.base import Workload

EMPTIED = "truncate"
"""The data state that leaves no row."""
SURE = 1e-6
"""Probability of a trial without a missing row below which it is void for sure."""
TOUCHED = 0.1
"""Share of the keys, or of the operations if these are fewer, that a trial touches at least, whatever the choice."""
TABLE_OF = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+([^\s(]+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Operation:
    """Reads and writes of rows by one kind of operation."""

    share: float
    reads: frozenset[str]
    """Tables that it reads before it has written the row itself."""
    wants_rows: bool
    """Whether an answer without a row counts as missing."""
    writes: frozenset[str]
    new: bool
    """Whether it only writes keys that no other operation has chosen."""


@dataclass(frozen=True)
class _Misses:
    """Reads of a treatment that find nothing."""

    share: float
    """Fraction of operations that read missing rows when the trial begins."""
    sure: bool
    """Whether they void the trial for sure."""
    never: bool
    """Whether nothing ever writes these rows."""


def refusals(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for treatments that are void for sure, because they read missing rows."""
    for settings, workload, misses in _treatments(study, plan, abilities):
        if misses.sure:
            empty, key = _why_empty(settings, workload)
            hint = (
                'data.state = "restore" fills the tables; a workload that writes the rows first does too'
                if key == "data.state"
                else "populate the tables with workload.records and the file's [populate]"
            )
            yield StudyError(
                f"{_words(settings, misses)}, but {empty}: more than limits.not_found_fraction = "
                f"{study.limits.not_found_fraction:g} of the answers would be missing, and every trial void",
                hint,
                key=key,
                read=settings.data.state,
            )


def notes(study: Study, plan: Plan, abilities: Abilities) -> Iterator[str]:
    """Sentences on treatments that may be void, or measure answers without a row."""
    for settings, workload, misses in _treatments(study, plan, abilities):
        if not misses.sure:
            yield (
                f"{_words(settings, misses)}, but {_why_empty(settings, workload)[0]}: an answer without its row "
                f"counts as missing, and limits.not_found_fraction = {study.limits.not_found_fraction:g}"
            )


def _words(settings: TrialSettings, misses: _Misses) -> str:
    written = "" if misses.never else " before a trial has written them"
    return f"{percent(misses.share)} of the operations of workload {settings.workload.name} read rows{written}"


def _why_empty(settings: TrialSettings, workload: Workload) -> tuple[str, str]:
    """Reason why rows are missing, and the key of the study that causes it."""
    if settings.data.state == EMPTIED:
        return f'data.state = "{EMPTIED}" removes them', "data.state"
    if not workload.order().records:
        return "workload.records = 0 fills no table", "workload.records"
    return "no statement of the workload file writes into their table", "workload.name"


def _treatments(study: Study, plan: Plan, abilities: Abilities) -> Iterator[tuple[TrialSettings, Workload, _Misses]]:
    """Each treatment that reads missing rows when its trial begins."""
    for settings in distinct(plan, "workload", "data", "load", "system"):
        workload = abilities.workload(settings)
        # What is in the tables of a cluster that exists is its owner's to know.
        known = settings.data.state == EMPTIED or not isinstance(abilities.system(settings), Existing)
        misses = _misses(workload.order(), settings, study.limits.not_found_fraction if known else 1.0)
        if misses is not None:
            yield settings, workload, misses


def _misses(work: Ycsb | Program | Requests | Jobs, settings: TrialSettings, limit: float) -> _Misses | None:
    if isinstance(work, Requests | Jobs):
        return None
    operations, filled = _read_work(work)
    records = work.records
    if settings.data.state == EMPTIED or not records:
        filled = frozenset()
    reads = [one for one in operations if one.reads - filled]
    if not reads:
        return None
    missing = frozenset().union(*(one.reads for one in reads)) - filled
    writers = [one for one in operations if one.writes & missing]
    share = sum(one.share for one in reads)
    wanted = sum(one.share for one in reads if one.wants_rows)
    if not wanted and writers:
        return None  # scans of what is there by then
    if not writers or not missing & frozenset().union(*(one.writes for one in writers)):
        senseless = not wanted and settings.data.state == EMPTIED
        return _Misses(share, sure=limit < 1 and (senseless or wanted > limit), never=True)
    again = sum(one.share for one in writers if not one.new)
    return _Misses(share, sure=limit == 0 and _without_a_miss(wanted, again, records, settings) < SURE, never=False)


def _without_a_miss(wanted: float, again: float, records: int, settings: TrialSettings) -> float:
    """Probability that no row is read before it was written: of each key that is touched, the first operation must be
    one of those that write it (share `again`) and none of those that want it (share `wanted`)."""
    touched = TOUCHED * min(records, settings.load.operations or records)
    return float((again / (wanted + again)) ** touched)


def _read_work(work: Ycsb | Program) -> tuple[list[_Operation], frozenset[str]]:
    """Operations of an order, and the tables that filling writes."""
    if isinstance(work, Ycsb):
        return _of_proportions(work.proportions.model_dump()), frozenset({""})
    filled = {_table(work.by_name[name]) for step in work.populate for name in step.statements}
    return _of_program(work), frozenset(filled)


def _of_proportions(proportions: Mapping[str, float]) -> list[_Operation]:
    """YCSB's operations, which all use one table."""
    total = sum(proportions.values())
    table, none = frozenset({""}), frozenset[str]()
    return [
        _Operation(
            share=amount / total,
            reads=table if kind in ("read", "scan", "read_modify_write") else none,
            wants_rows=kind in ("read", "read_modify_write"),
            writes=table if kind in ("update", "insert", "read_modify_write") else none,
            new=kind == "insert",
        )
        for kind, amount in proportions.items()
        if amount > 0
    ]


def _of_program(program: Program) -> list[_Operation]:
    total, statements = sum(operation.weight for operation in program.operations), program.by_name
    read = []
    for operation in program.operations:
        reads: set[str] = set()
        writes: set[str] = set()
        wants_rows = False
        for statement in (statements[name] for step in operation.steps for name in step.statements):
            table = _table(statement)
            if statement.writes:
                writes.add(table)
            elif table not in writes:
                reads.add(table)
                wants_rows = wants_rows or statement.wants_row
        if operation.weight > 0:
            new = isinstance(operation.keys, NewKeys)
            read.append(_Operation(operation.weight / total, frozenset(reads), wants_rows, frozenset(writes), new))
    return read


def _table(statement: StatementSpec) -> str:
    match = TABLE_OF.search(statement.cql)
    return match[1] if match else ""
