"""Two views of the board: a live screen for a terminal, plain log lines for everything else. Both write to stderr."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steelyard.cli.board import Board, NodeState, clock_span, label_of, narrowing_words, spark
from steelyard.judging.stopping_rule import Decision
from steelyard.lab import progress
from steelyard.model.trial import Phase

QUIET_LIMIT_S = 5.0
"""A plain log is never silent for longer than this while something is waited for."""
MOST_INTERVALS = 6
"""Treatments whose intervals one plain line tells: the widest that are waited for."""


def _end_by_the_clock(board: Board, now_s: float) -> str:
    left = board.left
    if left is None or left.seconds <= 0:
        return ""
    end, low, high = (datetime.fromtimestamp(now_s + s) for s in (left.seconds, left.low_s, left.high_s))
    return f"done about {end:%H:%M} ({low:%H:%M}-{high:%H:%M})"


def _head(board: Board, begun_s: float, now_s: float) -> Text:
    text = Text()
    text.append(board.study, style="bold")
    of = " of at most " if board.at_most else "/"
    parts = [f"block {board.block}{of}{board.blocks}"] if board.block else []
    if board.number:
        parts.append(f"trial {board.number}{of}{board.total}")
    parts.append(f"{clock_span(now_s - begun_s)} gone")
    if end := _end_by_the_clock(board, now_s):
        parts.append(end)
    text.append("   " + " · ".join(parts))
    return text


def _phase_text(board: Board, now_s: float) -> str:
    if board.phase is None:
        return ""
    seconds = now_s - board.phase_entered_s
    waits = f": {board.waiting}" if board.waiting else ""
    limit = f" of at most {clock_span(board.phase_timeout_s)}" if seconds > QUIET_LIMIT_S else ""
    return f"{board.phase}{waits}   {clock_span(seconds)}{limit}"


def _now(board: Board, now_s: float) -> Text:
    again = f" (attempt {board.attempt})" if board.attempt > 1 else ""
    text = Text(" now    ", style="dim")
    text.append(f"{label_of(board.treatment)}{again}   ", style="cyan")
    text.append(_phase_text(board, now_s))
    return text


def _load(board: Board) -> Text:
    text = Text(" load   ", style="dim")
    if board.tick is None:
        text.append("-")
        return text
    summary = board.tick.summary
    text.append(f"{summary.rate_per_s:,.0f} op/s {spark(board.rates)}   ")
    text.append(f"p99 {summary.response_ms_p99:.2f} ms response, {summary.service_ms_p99:.2f} ms service ")
    text.append(f"{spark(board.p99s_ms)}   generator {board.tick.cpu_fraction:.0%} of a core")
    if board.tick.errors:
        text.append(f"   {board.tick.errors} errors", style="bold red")
    return text


def _nodes(board: Board) -> RenderableType:
    """One node beside the other, as many as fit on a line."""
    parts = [Text.assemble((name, "bold"), " ", _readings(name, state)) for name, state in sorted(board.nodes.items())]
    return Padding(Columns(parts, padding=(0, 3)), (0, 0, 0, 1))


def _readings(name: str, state: NodeState) -> str:
    user, system = (state.values.get(f"node_cpu_{kind}_cores") for kind in ("user", "system"))
    memory = state.values.get("node_memory_rss_bytes")
    written = state.values.get("node_disk_write_bytes_per_s")
    words = []
    if user is not None and system is not None:
        words.append(f"{user + system:4.2f} cores")
    if memory is not None:
        words.append(f"{memory / 2**20:4,.0f} MB")
    if written is not None and name.startswith("n"):
        words.append(f"{written / 1e6:.1f} MB/s written")
    return " ".join(words)


def _cells(board: Board) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    table.add_column("cell")
    table.add_column("n", justify="right")
    table.add_column("execution time, median", justify="right")
    table.add_column("min to max", justify="right")
    intervals = {label_of(cell.treatment): cell for cell in board.decision.cells} if board.decision else {}
    if board.decision:
        table.add_column("starts", justify="right")
        table.add_column(f"until ±{board.decision.rule.width_percent:g}%")
    table.add_column("state")
    for cell in board.cells.values():
        values = cell.values_ms
        middle = f"{statistics.median(values) / 1000:.3f} s" if values else "-"
        spread = f"{min(values) / 1000:.3f} to {max(values) / 1000:.3f} s" if len(values) > 1 else "-"
        notes = [f"{cell.invalid} voided"] if cell.invalid else []
        if cell.infeasible:
            notes.append(f"infeasible: {cell.infeasible}")
        known = intervals.get(cell.label)
        told = [str(known.n) if known else "-", narrowing_words(known) if known else "-"] if intervals else []
        table.add_row(cell.label, str(len(values)), middle, spread, *told, Text(", ".join(notes), style="yellow"))
    return table


def decision_line(decision: Decision) -> str:
    """A decision of the stopping rule as one line: the rule before the first block, then the widest intervals."""
    if not decision.blocks:
        rule = decision.rule
        hours = f", {rule.hours:g} h at most" if rule.hours else ""
        return f"until {decision.target}: from {rule.least_starts} to {decision.cap} starts{hours}"
    known = [(cell, cell.half_width_percent) for cell in decision.wide or decision.cells]
    widest = [cell for cell, half in sorted(known, key=lambda one: -(float("inf") if one[1] is None else one[1]))]
    told = [f"{label_of(cell.treatment)} {narrowing_words(cell)} (n {cell.n})" for cell in widest[:MOST_INTERVALS]]
    more = f", and {len(widest) - MOST_INTERVALS} more" if len(widest) > MOST_INTERVALS else ""
    return f"block {decision.blocks} is whole: {'; '.join(told)}{more}. The study {decision.sentence}"


class LiveView:
    """One screen that is redrawn in place."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.time) -> None:
        self.board = Board()
        self._clock = clock
        self._begun_s = clock()
        self.note = ""
        self._live = Live(self, console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich__(self) -> RenderableType:
        now_s = self._clock()
        parts: list[RenderableType] = [_head(self.board, self._begun_s, now_s), _now(self.board, now_s)]
        parts.append(_load(self.board))
        if self.board.nodes:
            parts.append(_nodes(self.board))
        if self.note:
            parts.append(Text(f" {self.note}", style="bold reverse"))
        for trouble in self.board.troubles:
            parts.append(Text(f" ! {trouble.message}: {trouble.remedy}", style="yellow"))
        if self.board.cells:
            parts.append(_cells(self.board))
        return Group(*parts)

    def tell(self, event: progress.Event) -> None:
        """Take note of an event; the next beat draws it."""
        self.board.take(event, self._clock())

    def beat(self) -> None:
        """Time has passed: draw the screen anew."""
        self._live.refresh()


class PlainView:
    """One line an event that matters, with the time of day; nothing is silent for long."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.time) -> None:
        self.board = Board()
        self.note = ""
        self._write = write
        self._clock = clock
        self._spoke_s = clock()

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def tell(self, event: progress.Event) -> None:
        """Take note of an event, and write a line if it matters or if it has been quiet for long."""
        now_s = self._clock()
        self.board.take(event, now_s)
        line = self._line(event, now_s)
        if line is None:
            self.beat()
        else:
            self._say(line, now_s)

    def beat(self) -> None:
        """Time has passed: say what is going on if it has been quiet for long."""
        now_s = self._clock()
        if self.board.phase is not None and now_s - self._spoke_s >= QUIET_LIMIT_S:
            self._say(f"  still {_phase_text(self.board, now_s)}", now_s)

    def _say(self, line: str, now_s: float) -> None:
        self._write(f"{datetime.fromtimestamp(now_s):%H:%M:%S} {line}")
        self._spoke_s = now_s

    def _line(self, event: progress.Event, now_s: float) -> str | None:  # noqa: PLR0911 - one a kind of event
        match event:
            case progress.StudyBegan():
                of = "of at most" if event.at_most else "of"
                return f"{event.study}: {event.todo} {of} {event.total} trials to do, in {event.folder}"
            case progress.Judged():
                return decision_line(event.decision)
            case progress.StartBegan():
                what = label_of(event.treatment)
                return f"block {event.block}{self._of}{event.blocks}: starting {what} for {event.trials} trials"
            case progress.TrialBegan():
                again = f", attempt {event.attempt}" if event.attempt > 1 else ""
                what = label_of(event.planned.treatment)
                return f"trial {event.number}{self._of}{event.total}: {what}{again}"
            case progress.PhaseEntered(phase=Phase.DEPLOY | Phase.POPULATE | Phase.MEASURE):
                return f"  {event.phase}"
            case progress.TrialSealed():
                return self._sealed(event, now_s)
            case progress.Trouble():
                return f"  ! {event.message}: {event.remedy}"
            case _:
                return None

    @property
    def _of(self) -> str:
        return " of at most " if self.board.at_most else "/"

    def _sealed(self, event: progress.TrialSealed, now_s: float) -> str:
        values: dict[str, Any] = event.record.responses.model_dump()
        verdict = event.record.verdict
        reasons = "".join(f"; {reason.kind}" for reason in verdict.reasons)
        if values["execution_time_ms"] is None:
            return f"  {verdict.outcome}{reasons}"
        line = (
            f"  {verdict.outcome}: {values['execution_time_ms'] / 1000:.3f} s, {values['throughput_per_s']:,.0f} op/s"
        )
        if values["response_ms_p99"] is not None:
            line += f", p99 {values['response_ms_p99']:.2f} ms"
        end = _end_by_the_clock(self.board, now_s)
        return f"{line}{reasons}{'; ' + end if end else ''}"
