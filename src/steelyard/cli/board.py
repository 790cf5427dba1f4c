"""What a person sees of a study in progress: events folded into a board, the board drawn as a live screen or as log
lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.judging.stopping_rule import Decision, Narrowing, plus_minus
from steelyard.lab import progress
from steelyard.lab.progress import TimeLeft
from steelyard.model.sample import Sample
from steelyard.model.trial import Phase, TrialRecord
from steelyard.wire.record import Interval

SPARK = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24
RECENT_TROUBLES = 3


@dataclass
class Cell:
    """What is known of one treatment so far."""

    label: str
    values_ms: list[float] = field(default_factory=list)
    invalid: int = 0
    infeasible: str = ""


@dataclass
class NodeState:
    """The newest readings of one node."""

    values: dict[str, float] = field(default_factory=dict)


@dataclass
class Board:
    """Folds events; asks no clock and draws nothing."""

    study: str = ""
    folder: str = ""
    total: int = 0
    todo: int = 0
    blocks: int = 0
    block: int = 0
    number: int = 0
    attempt: int = 1
    treatment: Mapping[str, Any] = field(default_factory=dict)
    phase: Phase | None = None
    phase_timeout_s: float = 0.0
    phase_entered_s: float = 0.0
    waiting: str = ""
    left: TimeLeft | None = None
    at_most: bool = False
    decision: Decision | None = None
    """Of the stopping rule, after the last whole block."""
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=SPARK_WIDTH))
    p99s_ms: deque[float] = field(default_factory=lambda: deque(maxlen=SPARK_WIDTH))
    tick: Interval | None = None
    cells: dict[str, Cell] = field(default_factory=dict)
    nodes: dict[str, NodeState] = field(default_factory=dict)
    troubles: deque[progress.Trouble] = field(default_factory=lambda: deque(maxlen=RECENT_TROUBLES))

    def take(self, event: progress.Event, now_s: float) -> None:
        """Fold one event in."""
        match event:
            case progress.StudyBegan():
                self.study, self.total, self.todo = event.study, event.total, event.todo
                self.blocks, self.folder, self.at_most = event.blocks, event.folder, event.at_most
            case progress.Judged():
                self._judge(event.decision)
            case progress.TimeLeft():
                self.left = event
            case progress.StartBegan():
                self.block, self.treatment = event.block, event.treatment
                self.nodes.clear()
            case progress.TrialBegan():
                self.block, self.number, self.attempt = event.planned.block, event.number, event.attempt
                self.treatment = event.planned.treatment
                self._clear_load()
            case progress.PhaseEntered():
                self.phase, self.phase_timeout_s, self.phase_entered_s = event.phase, event.timeout_s, now_s
                self.waiting = ""
            case progress.Waiting():
                self.waiting = event.what
            case progress.Ticked():
                self._tick(event.record)
            case progress.Sampled():
                self._sample(event.samples)
            case progress.TrialSealed():
                self.add(event.record)
            case progress.Trouble():
                self.troubles.append(event)

    def add(self, record: TrialRecord) -> None:
        """Count a sealed trial in its cell."""
        label = label_of(record.treatment)
        cell = self.cells.setdefault(label, Cell(label))
        if record.verdict.outcome == "valid" and record.responses.execution_time_ms is not None:
            cell.values_ms.append(record.responses.execution_time_ms)
        elif record.verdict.system_fault:
            cell.infeasible = record.verdict.reasons[0].detail
        else:
            cell.invalid += 1
        self._clear_load()

    def _judge(self, decision: Decision) -> None:
        self.decision = decision
        for cell in decision.cells:
            if cell.n:
                label = label_of(cell.treatment)
                self.cells.setdefault(label, Cell(label))

    def _sample(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            self.nodes.setdefault(sample.node, NodeState()).values[sample.metric] = sample.value

    def _clear_load(self) -> None:
        self.tick = None
        self.rates.clear()
        self.p99s_ms.clear()

    def _tick(self, interval: Interval) -> None:
        self.tick = interval
        self.rates.append(interval.summary.rate_per_s)
        self.p99s_ms.append(interval.summary.response_ms_p99)


def narrowing_words(cell: Narrowing) -> str:
    """How well one treatment is known: `±1.9%, narrowing`."""
    if cell.half_width_percent is None:
        return cell.state
    return f"{plus_minus(cell.half_width_percent)}, {cell.state}"


def label_of(treatment: Mapping[str, Any]) -> str:
    """A treatment in a few words: `ycsb-a · 3 nodes`."""
    parts = []
    for name, level in treatment.items():
        short = name.rsplit(".", 1)[-1]
        if name in ("nodes", "site.nodes"):
            parts.append(f"{level} node{'s' if level != 1 else ''}")
        elif isinstance(level, str):
            parts.append(level)
        else:
            parts.append(f"{short} {level}")
    return " · ".join(parts) or "the one treatment"


def spark(values: deque[float]) -> str:
    """A line of small bars, from 0 to the greatest value."""
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    return "".join(SPARK[min(len(SPARK) - 1, int(value / top * (len(SPARK) - 1) + 0.5))] for value in values)


def clock_span(seconds: float) -> str:
    """`03:12` (h:min) from an hour, `4 min 05 s` and `12 s` below."""
    whole = max(0, round(seconds))
    if whole >= 3600:
        return f"{whole // 3600:02d}:{whole % 3600 // 60:02d} h"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"
