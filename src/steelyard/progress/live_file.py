"""Live file: the state of a running study, for readers of its store while a trial runs.

A trial's seconds are written when it is collected. A program that looks earlier (`steelyard serve`, on this machine or
on a copy of the folder) reads this file: it is replaced about once a second, never synced, no part of any result, and
gone when the study is not in progress. A file that is not renewed means that the process has died.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from pydantic import BaseModel, ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, field_validator

from steelyard.atomic_file import replace_file
from steelyard.events.base import Event
from steelyard.model.plausible import read_json_leniently
from steelyard.model.secret import Concealer, redacted
from steelyard.progress.state import Live, LoadSecond, NodeReadings, TroubleNoted, beginning
from steelyard.store import layout
from steelyard.store.plain_file import MOST_RECORD_BYTES, loaded, text_of

LEAST_S: Final = 0.9
"""Least seconds between two writes."""
NOT_WRITTEN: Final = frozenset({"folder", "cells", "decision"})
"""Fields that a reader knows from the store itself."""


class LiveFile:
    """Writes the state on a beat. A disk that takes no more stops nothing: it is tried again on the next beat."""

    def __init__(self, folder: Path, conceal: Concealer, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._conceal = conceal
        self._clock = clock
        self._written_s = float("-inf")
        self._live = beginning(clock())

    def __enter__(self) -> LiveFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            remove(self._folder)
        except OSError:
            # It is stale in a minute.
            return

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state; the next beat writes it."""
        self._live = live

    def beat(self) -> None:
        """Time has passed: write, if the last time is long enough ago."""
        now_s = self._clock()
        # Also when the clock was set back.
        if 0 <= now_s - self._written_s < LEAST_S:
            return
        self._written_s = now_s
        try:
            write(self._folder, self._live.model_copy(update={"t_s": now_s}), self._conceal)
        except OSError:
            return


def write(folder: Path, live: Live, conceal: Concealer) -> None:
    """Replace the file, without secrets. Not synced: it is worth nothing after a power cut, and a measurement must not
    wait for a disk. Raises OSError."""
    path = folder / layout.LIVE
    temporary = path.with_name(f"{path.name}.tmp")
    data = conceal.tree(live.model_dump(mode="json", exclude=set(NOT_WRITTEN)))
    text = json.dumps({"format": layout.LIVE_FORMAT, **data}, separators=(",", ":"))
    replace_file(path, text, draft=temporary, sync=False)


def remove(folder: Path) -> None:
    """Remove the file: nothing is in progress any more. Idempotent. Raises OSError."""
    for name in (layout.LIVE, f"{layout.LIVE}.tmp"):
        (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> Live | None:
    """Newest state of a study in progress; None if there is none, or one in another format. What another version
    says in another form is left out. Never raises: the file may come from anywhere."""
    try:
        text = text_of(folder / layout.LIVE, most_bytes=MOST_RECORD_BYTES)
        data = redacted(loaded(text, read_json_leniently))
        if not isinstance(data, dict) or data.get("format") != layout.LIVE_FORMAT:
            return None
        return _Read.model_validate(data)
    except (OSError, ValueError, RecursionError):
        return None


class _Read(Live):
    """The state as a file says it: a field that is not what it should be counts as not given."""

    @field_validator("seconds", "troubles", "nodes", mode="before")
    @classmethod
    def _readable(cls, value: Any, info: ValidationInfo) -> Any:
        """The valid entries of a list or a table."""
        if info.field_name == "nodes":
            return {name: item for name, item in value.items() if _is(NodeReadings, item)}
        kind = LoadSecond if info.field_name == "seconds" else TroubleNoted
        return [item for item in value if _is(kind, item)]

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_not_given(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return validate(value)
        except (ValidationError, AttributeError, TypeError):
            field = cls.model_fields[info.field_name or ""]
            if field.is_required():
                raise
            return field.get_default(call_default_factory=True)


def _is(kind: type[BaseModel], item: Any) -> bool:
    try:
        kind.model_validate(item)
    except ValidationError:
        return False
    return True
