"""Trials as one Parquet file, a row per attempt, for DuckDB, R and pandas."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.analysis.frame import TrialFrame
from steelyard.atomic_file import write_output
from steelyard.export.attempts import attempt_name
from steelyard.heavy import pl
from steelyard.model.trial import TrialRecord


def _phase_responses(record: TrialRecord) -> str | None:
    """Responses of each phase of the load; None if it has one only."""
    phases = {name: responses.model_dump(mode="json") for name, responses in record.phase_responses.items()}
    return json.dumps(phases) if phases else None


ADDED: Final[Mapping[str, tuple[str, Callable[[TrialRecord], Any]]]] = {
    "study": ("String", lambda record: record.study),
    "folder": ("String", attempt_name),
    "seed": ("Int64", lambda record: record.seed),
    "data": ("String", lambda record: record.data),
    "planned_start": ("String", lambda record: record.planned_start),
    "offered_rate_per_s": ("Float64", lambda record: record.offered_rate_per_s),
    "shares": ("List", lambda record: list(record.shares)),
    "settings": ("String", lambda record: record.settings.model_dump_json()),
    "versions": ("String", lambda record: json.dumps(record.versions, ensure_ascii=False)),
    "phase_responses": ("String", _phase_responses),
}
"""Columns added to those of the trial frame: type, and value. `settings`, `versions` and `phase_responses` are JSON."""
LIMITS: Final = "steelyard.limits"
OF_THE_RECORD: Final = "record_"
"""Put before the name of such a column where a factor has it."""


def write(frame: TrialFrame, records: Sequence[TrialRecord], path: Path, limits: Sequence[str] = ()) -> int:
    """Write these records as rows with the columns of the trial frame and `ADDED`; gives the number of rows.

    `limits` of the study's answer go into the file's metadata, as a JSON list under `LIMITS`.

    `frame` has every attempt of the store: which trials are warm-up depends on all of them. Raises OSError that names
    the path.
    """
    added = _added(records, taken=frame.data.columns)
    table = frame.data.join(added, on=("trial_id", "attempt"), how="inner", maintain_order="left")
    content = io.BytesIO()  # polars hides why a file cannot be written
    table.write_parquet(content, metadata={LIMITS: json.dumps(limits, ensure_ascii=False)})
    write_output(path, content.getvalue())
    return table.height


def _added(records: Sequence[TrialRecord], taken: Sequence[str]) -> pl.DataFrame:
    columns = {
        "trial_id": pl.Series([record.id for record in records], dtype=pl.String),
        "attempt": pl.Series([record.attempt for record in records], dtype=pl.Int64),
    }
    for name, (kind, value) in ADDED.items():
        dtype = pl.List(pl.String) if kind == "List" else getattr(pl, kind)
        columns[f"{OF_THE_RECORD}{name}" if name in taken else name] = pl.Series(
            [value(record) for record in records], dtype=dtype
        )
    return pl.DataFrame(columns)
