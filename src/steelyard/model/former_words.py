"""Former names in study files, plans, records and reports, and their current names.

Former names are accepted wherever they occur and never written. A trial's id is a hash of its settings in the words in
which that setting was first written, so that stores of earlier versions keep their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

LEVELS: Final[Mapping[str, Mapping[object, str]]] = {"data.state": {"thaw": "restore"}}
"""Field to its former levels and their current names."""
DATA: Final[Mapping[str, str]] = {"thawed": "restored"}
"""How tables came to their state, in records."""
LIMITS: Final[Mapping[str, str]] = {"foreign_cpu_fraction": "background_cpu_fraction"}
"""Keys of limits and of calibrations."""
REASONS: Final[Mapping[str, str]] = {"foreign load or steal": "background load or steal"}
"""Kinds of reasons."""

MOVED: Final[Mapping[str, str]] = {"site.memory_mb": "node.memory_mb", "site.cpus": "node.cpus"}
"""Fields of site `local` to the fields of all sites that took their place."""
MOVED_FROM_SITE: Final = "local"

Level = TypeVar("Level")


def level(factor: str, written: Any) -> Any:
    """A level in current words."""
    known = LEVELS.get(factor, {})
    return known.get(written, written) if isinstance(written, str) else written


def treatment(written: Mapping[str, Level]) -> dict[str, Level]:
    """Levels by factor in current words."""
    return {factor: level(factor, value) for factor, value in written.items()}


def settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Complete settings in current words, each at its current place."""
    return _limits_to_node(_replaced(written, LEVELS))


def settings_as_first_written(today: Mapping[str, Any]) -> dict[str, Any]:
    """Complete settings as they were first written, words and places: the form that a trial's id hashes."""
    words = {field: {new: old for old, new in known.items()} for field, known in LEVELS.items()}
    return _limits_to_site(_replaced(today, words))


def field(name: str) -> str:
    """The current place of a field, by its dotted name."""
    return MOVED.get(name, name)


def flat(written: Mapping[str, str], site: str) -> dict[str, str]:
    """Settings as text by dotted name, each at its current place; unset ones are empty."""
    moved = {old: new for old, new in MOVED.items() if written.get(old)} if site == MOVED_FROM_SITE else {}
    return {name: "" if name in moved else text_ for name, text_ in written.items()} | {
        new: written[old] for old, new in moved.items()
    }


def _limits_to_node(written: dict[str, Any]) -> dict[str, Any]:
    """Limits of nodes that site `local` once had, in section `node`."""
    site, node = written.get("site"), dict(written.get("node") or {})
    if not isinstance(site, Mapping) or site.get("name") != MOVED_FROM_SITE:
        return written
    site = dict(site)
    for old, new in MOVED.items():
        former, today = old.partition(".")[2], new.partition(".")[2]
        if site.get(former) is not None and node.get(today) is None:
            node[today], site[former] = site[former], None
    return {**written, "site": site, "node": node} if node else written


def _limits_to_site(today: dict[str, Any]) -> dict[str, Any]:
    """The reverse: limits of nodes where site `local` had them."""
    site, node = today.get("site"), today.get("node")
    if not isinstance(site, Mapping) or not isinstance(node, Mapping) or site.get("name") != MOVED_FROM_SITE:
        return today
    site, node = dict(site), dict(node)
    for old, new in MOVED.items():
        former, current = old.partition(".")[2], new.partition(".")[2]
        if former in site and current in node:
            site[former] = node.pop(current)
    others = {name: table for name, table in today.items() if name != "node"}
    return {**others, "site": site, **({"node": node} if node else {})}


def _replaced(table: Mapping[str, Any], words: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    replaced = dict(table)
    for field, known in words.items():
        section, _, name = field.partition(".")
        inner = replaced.get(section)
        if isinstance(inner, Mapping) and isinstance(value := inner.get(name), str) and value in known:
            replaced[section] = {**inner, name: known[value]}
    return replaced


def keys(written: Any, known: Mapping[str, str]) -> Any:
    """A table with current keys; a table with both keys, or a value that is not a table, is returned unchanged."""
    if not isinstance(written, Mapping):
        return written
    former = {old: new for old, new in known.items() if old in written and new not in written}
    return {former.get(key, key): value for key, value in written.items()} if former else written


def text(written: str) -> str:
    """A report's text in current words."""
    for old, new in (*REASONS.items(), *DATA.items()):
        written = written.replace(old, new)
    return written
