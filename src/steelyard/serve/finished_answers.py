"""Answers of finished studies, each computed by a report job and kept until its store changes.

A process of its own reads the trials (see `steelyard.serve.report_jobs`) and leaves the few texts that a page shows.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from steelyard.analysis.narrative.answer_parts import parts_of
from steelyard.analysis.narrative.answer_table import AnswerTable
from steelyard.atomic_file import write_output
from steelyard.format import count
from steelyard.model.value import Value
from steelyard.reading.reading import read
from steelyard.serve.report_jobs import ANSWER, Crowded, Job, Maker
from steelyard.serve.store_cache import StoreLook

SHOWN_LIMITS: Final = 2
"""Limits that are shown; the others are folded."""


class StudyAnswer(Value):
    """Answer of a study as its report has it."""

    lead: tuple[str, ...] = ()
    """Sentences before the table."""
    table: AnswerTable | None = None
    """None if nothing was compared."""
    beside: tuple[str, ...] = ()
    """Sentences after the table."""
    limits: tuple[str, ...] = ()
    """What limits the answer, the most important first."""
    failure: str = ""
    """Why there is no answer."""

    @property
    def line(self) -> str:
        """The answer in one line: `execution time, 2 nodes against 1 node: 1.26 s to 1.72 s, +36% [4, 78], slower`."""
        compared = [row for row in self.table.rows if row.change_text] if self.table is not None else []
        if self.table is None or not compared:
            return self.lead[0] if self.lead else ""
        row, more = compared[-1], len(compared) - 1
        values = (
            [f"{row.baseline_value_text} to {row.value_text}"] if row.value_text and row.baseline_value_text else []
        )
        what = ", ".join(filter(None, [self.table.response_label, row.line]))
        outcome = ", ".join([*values, row.change_text, row.verdict_text])
        others = f"; {count(more, 'more comparison')}" if more else ""
        return f"{what}, {row.level_text} against {row.baseline_text}: {outcome}{others}"


def answer_of(folder: Path) -> StudyAnswer:
    """The answer of the store in `folder`. Raises what `read` raises."""
    results = read(folder).results
    parts, further = parts_of(results), tuple(one.answer[0] for one in results.further)
    table = results.answer_table if results.answer_table is not None and results.answer_table.rows else None
    return StudyAnswer(lead=parts.lead, table=table, beside=(*parts.beside, *further), limits=results.caveats)


def write(store: str, into: str) -> None:
    """Write the answer of a store into a folder: what the job of an answer executes."""
    write_output(Path(into) / ANSWER, answer_of(Path(store)).model_dump_json())


class FinishedAnswers:
    """Answers by store. One is computed at a time, so that a report never waits for several of them."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._kept: dict[str, tuple[str, StudyAnswer]] = {}
        self._job: Job | None = None
        self._guard = threading.Lock()

    def of(self, look: StoreLook, *, ask: bool = True) -> StudyAnswer | None:
        """The answer of a finished study; None while it is computed. With `ask` it is, if it is not known."""
        with self._guard:
            self._collect()
            changed, answer = self._kept.get(look.name, ("", None))
            if answer is not None and changed == look.changed:
                return answer
            if ask and self._job is None:
                try:
                    self._job = self._maker.ask(look.name, "answer", look.folder, look.changed)
                except Crowded:
                    return None
            return None

    def keep(self, names: Collection[str]) -> None:
        """Forget the answers of all stores but these."""
        with self._guard:
            self._kept = {name: kept for name, kept in self._kept.items() if name in names}

    def _collect(self) -> None:
        if self._job is None:
            return
        job = self._maker.find(self._job.number, self._job.name)
        if job is None:
            self._job = None
        elif job.state in ("ready", "failed"):
            self._job = None
            self._kept[job.name] = job.changed, _found(job)


def _found(job: Job) -> StudyAnswer:
    if job.failure:
        return StudyAnswer(failure=job.failure.splitlines()[-1])
    try:
        return StudyAnswer.model_validate_json((job.folder / ANSWER).read_bytes())
    except (OSError, ValueError) as error:
        return StudyAnswer(failure=f"it cannot be read: {error}")
