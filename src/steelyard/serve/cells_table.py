"""Table of cells of a study in progress: each treatment's estimates so far, and how its interval narrows.

Every number is an estimate of `steelyard.analysis`; a cell is computed again only when it has another trial, because
a viewer should not disturb what is measured on the same machine.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.analysis.frame import frame_of
from steelyard.analysis.inference import estimates
from steelyard.analysis.statistics.scaling import scaled
from steelyard.analysis.statistics.summary import summarise
from steelyard.analysis.wording import scale
from steelyard.format import interval, number, treatment_label
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.responses import gain_error_percent, label_of, unit_of
from steelyard.model.study import Study
from steelyard.model.trial import CellKey, TrialRecord, cell_key
from steelyard.serve.store_cache import StoreLook

FURTHER: Final = ("throughput_per_s", "response_ms_p99")
"""Responses that are shown together with the study's main response."""
COURSE: Final = 24
"""Points of the course of an interval's width."""


@dataclass(frozen=True)
class Value:
    """One response of one cell, as people read it."""

    text: str
    unit: str
    method: str
    """Method, and units that it rests on."""
    known: bool = True


@dataclass(frozen=True)
class Cell:
    """One treatment so far."""

    name: str
    n: int
    """Valid trials that count."""
    planned: int
    """Trials of the plan."""
    starts: int
    values: tuple[Value, ...]
    """The main response, then `FURTHER`."""
    half_percent: float | None
    """Half of the main response's interval over its mean, percent; None if n supports no interval."""
    course: tuple[float, ...]
    """The same after each of the last starts, oldest first."""
    left_out: str
    """Attempts that do not count, and why."""
    infeasible: str
    """Why the system cannot do it, if a trial said so."""


def responses(study: Study) -> tuple[str, ...]:
    """The responses of the table: the study's, then those next to it."""
    main = str(study.analysis.response)
    return (main, *(name for name in FURTHER if name != main))


def heads(study: Study) -> tuple[str, ...]:
    """Usual names of these responses."""
    return tuple(label_of(name) for name in responses(study))


class Cells:
    """Computes the cells of one store; remembers those to which nothing was added."""

    def __init__(self) -> None:
        self._kept: dict[CellKey, tuple[object, Cell]] = {}
        self._guard = threading.Lock()

    def of(self, look: StoreLook) -> tuple[Cell, ...]:
        """Every treatment of the plan and of the records, in the study's order."""
        study = look.study
        if study is None:
            return ()
        planned: dict[CellKey, int] = {}
        for trial in look.plan.trials if look.plan else ():
            if not trial.control:
                planned[cell_key(trial.treatment)] = planned.get(cell_key(trial.treatment), 0) + 1
        members: dict[CellKey, list[TrialRecord]] = {key: [] for key in planned}
        for record in look.records:
            members.setdefault(record.cell, []).append(record)
        with self._guard:
            cells = [self._cell(key, records, planned.get(key, 0), study) for key, records in members.items()]
            self._kept = {key: kept for key, kept in self._kept.items() if key in members}
        order = {key: index for index, key in enumerate(sorted(members, key=lambda key: _place(study, dict(key))))}
        return tuple(cell for _, cell in sorted(zip(members, cells, strict=True), key=lambda pair: order[pair[0]]))

    def _cell(self, key: CellKey, records: Sequence[TrialRecord], planned: int, study: Study) -> Cell:
        state = (planned, study.analysis, tuple((*record.key, record.begun_s) for record in records))
        kept = self._kept.get(key)
        if kept is not None and kept[0] == state:
            return kept[1]
        cell = cell_of(dict(key), records, planned, study)
        self._kept[key] = (state, cell)
        return cell


def cell_of(treatment: Mapping[str, Level], records: Sequence[TrialRecord], planned: int, study: Study) -> Cell:
    """One treatment by its sealed attempts: the numbers that the answer of the finished study will quote."""
    frame = frame_of(records, study)
    confidence = study.analysis.confidence
    summaries = [
        summarise(frame, name, dict(treatment), confidence, gain_error_percent(name, study.cost))
        for name in (responses(study) if records else ())
    ]
    main = summaries[0] if summaries else None
    shown = [one.value for one in summaries]
    faults = [record for record in records if record.verdict.system_fault]
    return Cell(
        name=treatment_label(treatment),
        n=main.n if main else 0,
        planned=planned,
        starts=main.starts if main else 0,
        values=tuple(_value(one, name) for one, name in zip(shown, responses(study), strict=False))
        or tuple(Value("–", unit_of(name), "no trial yet", known=False) for name in responses(study)),
        half_percent=_half_percent(shown[0]) if shown else None,
        course=tuple(_course(main.start_means, confidence)) if main else (),
        left_out="; ".join(f"{one.trials} × {one.reason}" for one in main.exclusions) if main else "",
        infeasible=faults[-1].verdict.reasons[0].detail if faults and main and not main.n else "",
    )


def _value(estimate: Estimate | None, response: str) -> Value:
    if estimate is None:
        return Value("–", unit_of(response), "no valid trial has a value", known=False)
    factor, unit = scale([estimate.value], unit_of(response))
    text = f"{number(estimate.value * factor, digits=3, trim=False)} {interval(scaled(estimate, factor))}".strip()
    return Value(text, unit, f"{estimate.method}; n = {estimate.n}")


def _half_percent(estimate: Estimate | None) -> float | None:
    if estimate is None or estimate.low is None or estimate.high is None or not estimate.value:
        return None
    return 50 * (estimate.high - estimate.low) / abs(estimate.value)


def _course(values: Sequence[float], confidence: float) -> list[float]:
    """Half-widths in percent of the mean of the first 3, 4, ... values."""
    first = max(FEWEST_STARTS, len(values) - COURSE + 1)
    widths = [
        _half_percent(estimates.geometric_mean(values[:n], "", confidence, "", FEWEST_STARTS))
        for n in range(first, len(values) + 1)
    ]
    return [one for one in widths if one is not None]


def _place(study: Study, treatment: Mapping[str, Level]) -> tuple[tuple[int, str], ...]:
    def place(levels: Sequence[Level], level: Level | None) -> int:
        return list(levels).index(level) if level is not None and level in levels else len(levels)

    return tuple(
        (place(levels, treatment.get(name)), str(treatment.get(name))) for name, levels in study.factors.items()
    )


def width(cell: Cell) -> str:
    """`±1.9%`; empty if there is no interval."""
    return "" if cell.half_percent is None else f"±{number(cell.half_percent, digits=2)}%"
