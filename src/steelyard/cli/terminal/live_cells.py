"""Table of cells on the live screen: each treatment's value so far, by the estimator of the answer.

The value is that of `analysis.cells`: used trials only, geometric mean of start means. A cell is computed again only
when it has another trial, because the screen is drawn on the machine that is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from steelyard.analysis.cells import cells_of
from steelyard.analysis.frame import frame_of
from steelyard.analysis.wording import mean_of, quantity
from steelyard.format import treatment_label
from steelyard.judging.dilation import modelled
from steelyard.model.named_level import Level
from steelyard.model.responses import label_of, unit_of
from steelyard.model.study import Study
from steelyard.model.trial import CellKey, TrialRecord, cell_key
from steelyard.progress.reason_words import narrowing_words
from steelyard.progress.state import CellSoFar, Live

LONGEST_LABEL = 30
"""Characters of a cell that are not broken over lines."""


@dataclass(frozen=True)
class _Texts:
    used: int = 0
    starts: int = 0
    value: str = "-"
    spread: str = "-"


class LiveCells:
    """The sealed trials of a study by treatment, of earlier sessions too, and the values computed from them."""

    def __init__(self, study: Study, records: Iterable[TrialRecord] = ()) -> None:
        self._study = study
        self._records: dict[CellKey, list[TrialRecord]] = {}
        self._texts: dict[CellKey, _Texts] = {}
        for record in records:
            self.add(record)

    def add(self, record: TrialRecord) -> None:
        """Take one more sealed trial."""
        key = record.cell
        self._records.setdefault(key, []).append(modelled(record))
        self._texts.pop(key, None)

    def table(self, live: Live) -> Table:
        """The cells of the state, each with its value and how far the stopping rule is with it."""
        table = Table(box=None, padding=(0, 1, 0, 1), header_style="dim")
        labels = [treatment_label(cell.treatment) for cell in live.cells]
        table.add_column("cell", no_wrap=max(map(len, labels), default=0) <= LONGEST_LABEL)
        table.add_column("used", justify="right")
        table.add_column("starts", justify="right")
        table.add_column(f"{mean_of(live.response)} {label_of(live.response)}", justify="right")
        table.add_column("min to max", justify="right", no_wrap=True)
        decision = live.decision
        if decision is not None:
            table.add_column(f"until ±{decision.rule.width_percent:g}%")
        table.add_column("state")
        for cell, label in zip(live.cells, labels, strict=True):
            texts = self._of(cell.treatment)
            interval: list[str] = []
            if decision is not None:
                known = next((judged for judged in decision.cells if judged.treatment == cell.treatment), None)
                interval = [narrowing_words(known, texts.starts) if known is not None else "-"]
            note = Text(_note(cell), style="yellow")
            columns = (str(texts.used), str(texts.starts), texts.value, texts.spread, *interval)
            table.add_row(label, *columns, note)
        return table

    def _of(self, treatment: Mapping[str, Level]) -> _Texts:
        key = cell_key(treatment)
        if key not in self._texts:
            self._texts[key] = _texts(self._records.get(key, ()), self._study)
        return self._texts[key]


def _texts(records: Iterable[TrialRecord], study: Study) -> _Texts:
    """Values of the columns for one treatment."""
    response = str(study.analysis.response)
    unit = unit_of(response)
    frame = frame_of(tuple(records), study)
    (cell, *_) = cells_of(frame, response, study.analysis.confidence) or (None,)
    if cell is None or cell.value is None:
        return _Texts()
    values = frame.values(response)[response]
    least, most = (quantity(float(end), unit) for end in (values.min(), values.max()))  # type: ignore[arg-type]
    spread = f"{least} to {most}" if cell.n > 1 else "-"
    return _Texts(cell.n, cell.starts, cell.value_text, spread)


def _note(cell: CellSoFar) -> str:
    notes = [f"{cell.invalid} voided"] if cell.invalid else []
    return ", ".join([*notes, f"infeasible: {cell.infeasible}"] if cell.infeasible else notes)
