"""Former names in study files, plans, records and reports, and their current names.

They are read wherever they stand and written nowhere. A trial's id is a hash of its settings in the words in which that
setting was first written, so that a store of an earlier version goes on with the same ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

LEVELS: Final[Mapping[str, Mapping[object, str]]] = {"data.state": {"thaw": "restore"}}
"""Field to its former levels, and those of today."""
DATA: Final[Mapping[str, str]] = {"thawed": "restored"}
"""How tables came to their state, in records."""
LIMITS: Final[Mapping[str, str]] = {"foreign_cpu_fraction": "background_cpu_fraction"}
"""Keys of limits and of calibrations."""
REASONS: Final[Mapping[str, str]] = {"foreign load or steal": "background load or steal"}
"""Kinds of reasons."""

Level = TypeVar("Level")


def level(factor: str, written: Any) -> Any:
    """A level in the words of today."""
    known = LEVELS.get(factor, {})
    return known.get(written, written) if isinstance(written, str) else written


def treatment(written: Mapping[str, Level]) -> dict[str, Level]:
    """Levels by factor in the words of today."""
    return {factor: level(factor, value) for factor, value in written.items()}


def settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Complete settings in the words of today."""
    return _replaced(written, LEVELS)


def settings_as_first_written(today: Mapping[str, Any]) -> dict[str, Any]:
    """Complete settings in the words in which they were first written: those that a trial's id hashes."""
    return _replaced(today, {field: {new: old for old, new in known.items()} for field, known in LEVELS.items()})


def _replaced(table: Mapping[str, Any], words: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    replaced = dict(table)
    for field, known in words.items():
        section, _, name = field.partition(".")
        inner = replaced.get(section)
        if isinstance(inner, Mapping) and isinstance(value := inner.get(name), str) and value in known:
            replaced[section] = {**inner, name: known[value]}
    return replaced


def keys(written: Any, known: Mapping[str, str]) -> Any:
    """A table with the keys of today; what has both keys, or is no table, is given back as it is."""
    if not isinstance(written, Mapping):
        return written
    former = {old: new for old, new in known.items() if old in written and new not in written}
    return {former.get(key, key): value for key, value in written.items()} if former else written


def text(written: str) -> str:
    """A text of a report in the words of today."""
    for old, new in (*REASONS.items(), *DATA.items()):
        written = written.replace(old, new)
    return written
