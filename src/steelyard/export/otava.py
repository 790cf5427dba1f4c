"""History of trials for Apache Otava: one CSV per cell, and `otava.yaml`, which names a test for each of them.

Otava finds points in time at which a metric changed. A row is a trial, a metric a response. Otava reads every metric of
every row as a number, so a response that a row of the cell lacks is left out of that cell, and wants names of metrics
that no other test has, so they begin with that of the test. Names of files in the
configuration are relative to its folder: run Otava there. Formats: `otava/test_config.py` and `otava/importer.py` of
apache-otava 0.8.0.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from steelyard.atomic_file import write_output
from steelyard.export.attempts import attempt_name
from steelyard.format import treatment_label
from steelyard.judging.trial_responses import response_of
from steelyard.model import responses
from steelyard.model.trial import TrialRecord
from steelyard.shown_text import csv_cell, visible

CONFIGURATION: Final = "otava.yaml"
TIME: Final = "time"
ATTRIBUTES: Final = ("trial", "start", "system_version", "steelyard_version")
NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


def write(records: Iterable[TrialRecord], folder: Path, limits: Sequence[str] = ()) -> int:
    """Write the valid trials among these records; gives the number of cells. `limits` of the study's answer are
    comments of the configuration. Raises OSError that names the file."""
    tests: dict[str, dict[str, Any]] = {}
    for cell, of_cell in _by_cell(records).items():
        name = _free(f"{of_cell[0].study}.{NOT_IN_A_NAME.sub('-', cell).strip('-')}", tests)
        metrics = _metrics(of_cell)
        write_output(folder / f"{name}.csv", _table(of_cell, metrics))
        tests[name] = {
            "type": "csv",
            "file": f"{name}.csv",
            "time_column": TIME,
            "attributes": list(ATTRIBUTES),
            "metrics": {f"{name}.{metric}": {"column": metric, "direction": _direction(metric)} for metric in metrics},
            "csv_options": {"delimiter": ",", "quote_char": '"'},
        }
    text = yaml.safe_dump({"tests": tests}, sort_keys=False, allow_unicode=True)
    remarks = ("Run Otava in this folder: otava analyze --config-file otava.yaml TEST", *map(visible, limits))
    write_output(folder / CONFIGURATION, "".join(f"# {remark}\n" for remark in remarks) + text)
    return len(tests)


def _by_cell(records: Iterable[TrialRecord]) -> Mapping[str, Sequence[TrialRecord]]:
    """Valid trials by the label of their treatment, in order of time."""
    cells: dict[str, list[TrialRecord]] = {}
    for record in sorted(records, key=lambda record: (record.begun_s, record.id)):
        if record.verdict.outcome == "valid":
            cells.setdefault(treatment_label(record.treatment, full=True), []).append(record)
    return cells


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number where another cell has it."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _metrics(records: Sequence[TrialRecord]) -> list[str]:
    """Responses that every trial of the cell has."""
    return [name for name in responses.every() if all(response_of(record, name) is not None for record in records)]


def _direction(name: str) -> int:
    """1: more is better; -1: less is. Counts say neither: here more operations are better, and fewer of all others."""
    return 1 if name == "operations" or responses.better_of(name) == "more" else -1


def _table(records: Sequence[TrialRecord], metrics: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, *ATTRIBUTES, *metrics])
    for record in records:
        time = datetime.fromtimestamp(record.begun_s, UTC).isoformat(timespec="seconds")
        versions = (_version(record), record.versions.get("steelyard", ""))
        values = (repr(response_of(record, metric)) for metric in metrics)
        texts = (attempt_name(record), record.start, *versions)
        writer.writerow([time, *map(csv_cell, texts), *values])
    return text.getvalue()


def _version(record: TrialRecord) -> str:
    name = record.settings.system.name
    return record.versions.get(name) or record.versions.get("system", "")
