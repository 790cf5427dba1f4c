"""Journal (`events.jsonl`): its lines as entries, a kept event each with its time and its place.

A line whose name is unknown here, and a line whose fields do not match its name, are kept as `Unknown`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.events.base import Kept, Unknown, event_of
from steelyard.events.kept import StudyWritten
from steelyard.model.errors import StoreError
from steelyard.model.plausible import LATEST_S, read_json_leniently
from steelyard.store.plain_file import content_of, loaded, problem_of

NOT_UTF8: Final = "\N{REPLACEMENT CHARACTER}"
"""Replacement of a byte that is not UTF-8."""


@dataclass(frozen=True)
class Entry:
    """A line of the journal."""

    number: int
    """From 1."""
    t_s: float | None
    """Time of the event, seconds since the epoch; None if the line has no such number."""
    event: Kept | Unknown | None
    """None if the line cannot be read: a power cut tore it, or it is not UTF-8."""

    def fields(self) -> dict[str, Any]:
        """The line as a table."""
        if self.event is None:
            return {"t_s": self.t_s}
        return {"t_s": self.t_s, "event": self.event.name, **self.event.fields()}


def line(event: Kept, t_s: float, conceal: Callable[[Any], Any] = lambda fields: fields) -> str:
    """An event as a line of the journal, with its line ending. `conceal` removes secrets from its fields."""
    return json.dumps({"t_s": round(t_s, 3), "event": event.name, **conceal(event.fields())}) + "\n"


def entries(text: str, conceal: Callable[[Any], Any] = lambda fields: fields) -> Iterator[Entry]:
    """Every line of a journal from any source. `conceal` removes secrets from each line. Never raises."""
    for number, written in enumerate(text.splitlines(), start=1):
        if NOT_UTF8 in written:
            # A writer escapes every other character.
            yield Entry(number, None, None)
            continue
        try:
            fields = conceal(loaded(written, read_json_leniently))
        except (ValueError, RecursionError):
            yield Entry(number, None, None)
            continue
        if isinstance(fields, dict):
            yield Entry(number, _time_of(fields), event_of(fields))
        else:
            yield Entry(number, None, Unknown("", {}, "no table"))


def read(path: Path, conceal: Callable[[Any], Any] = lambda fields: fields) -> tuple[Entry, ...]:
    """Every line of the journal at `path`; none if there is no such file. Raises StoreError if it is not a regular
    file."""
    try:
        text = content_of(path).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    except OSError as error:
        what = f"the journal cannot be read: {problem_of(error)}"
        raise StoreError(
            f"{path}: {what}", "move it away, or restore it from a copy", path=str(path), what=what
        ) from error
    return tuple(entries(text, conceal))


def why_unreadable(numbers: Sequence[int], last: int) -> str:
    """Probable cause of lines that cannot be read; `last`: number of the last line."""
    return "torn by a power cut?" if list(numbers) == [last] else "edited, or damaged on the disk"


def written(entries: Iterable[Entry], name: str) -> frozenset[str]:
    """SHA-256 of a file of the study in each of its forms that a session wrote; empty if the journal does not say."""
    events = (entry.event for entry in entries)
    return frozenset(event.sha256[name] for event in events if isinstance(event, StudyWritten) and name in event.sha256)


def _time_of(fields: Mapping[str, Any]) -> float | None:
    value = fields.get("t_s")
    return float(value) if isinstance(value, int | float) and 0 <= value <= LATEST_S else None
