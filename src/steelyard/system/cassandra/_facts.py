"""Settings in force on a running node, and their differences from the requested ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.model.facts import PROMISE
from steelyard.model.secret import is_reference, looks_secret

SIZE = re.compile(r"^(\d+)(B|KiB|MiB|GiB)$")
DURATION = re.compile(r"^(\d+)(ns|us|µs|ms|s|m|h|d)$")
RATE = re.compile(r"^(\d+(?:\.\d+)?)(B/s|KiB/s|MiB/s)$")

SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DURATION_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}
RATE_UNITS = {"B/s": 1, "KiB/s": 2**10, "MiB/s": 2**20}

WORDS = {"true": "true", "false": "false", "null": "null", "none": "null"}

OLD_NAMES = re.compile(r"_in_(ms|s|mb|kb|min|minutes|seconds|bytes|ns)$|_(ms|mb|kb)$|_(mb|kb|megabits)_per_sec$")
"""Names from before 4.1, which the node still lists along with the new names that have units in their values."""

NOT_SHOWN = "not shown"
"""Value of a setting that a node lists, but not with its value."""

DEPARTURES = {
    "memory lock": "off: as root Cassandra would lock its whole heap; the laboratory takes CAP_IPC_LOCK away",
    "AlwaysPreTouch": "off: Cassandra's own jvm-server.options touch every page of the heap at the start",
    "log level": "INFO to one file; Cassandra's own is DEBUG too",
    "class archive": "AppCDS, which Cassandra's own start script does not use",
}
"""Differences between the way we start Cassandra and its own packages' scripts, on every node."""

OF_FIRST_NODES = {
    "all nodes are seeds": "with their tokens and without bootstrap, so that the ring starts in parallel",
    "start properties": "ring delay 100 ms, no wait for gossip to settle",
}


def departures(*, joined: bool, ring_delay_ms: int | None) -> dict[str, str]:
    """The differences of one node, recorded with every trial. `joined`: it bootstrapped in a cluster that ran, with
    Cassandra's own waits, except for `ring_delay_ms`."""
    delay = {} if ring_delay_ms is None else {"start properties": f"ring delay {ring_delay_ms} ms"}
    if joined:
        return {**DEPARTURES, **delay}
    settle = {what: f"{how}, no wait for gossip to settle" for what, how in delay.items()}
    return {**DEPARTURES, **OF_FIRST_NODES, **settle}


def normal(value: Any) -> str:
    """A value in canonical form: sizes in bytes, durations in nanoseconds, rates in bytes per second, booleans in lower
    case, integers without a decimal point. `64MiB` and `65536KiB` are the same."""
    if isinstance(value, list):
        return "[" + ",".join(normal(item) for item in value) + "]"
    text = str(value).strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for pattern, units, unit in ((SIZE, SIZE_UNITS, "B"), (DURATION, DURATION_UNITS, "ns"), (RATE, RATE_UNITS, "B/s")):
        if match := pattern.match(text):
            return f"{float(match[1]) * units[match[2]]:.0f}{unit}"
    if text.startswith("[") and text.endswith("]"):
        return "[" + ",".join(normal(item) for item in text[1:-1].split(",") if item.strip()) + "]"
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else text


def flatten(asked: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as the node lists them: `sstable.selected_format`."""
    flat: dict[str, Any] = {}
    for key, value in asked.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def in_force(rows: Iterable[Mapping[str, Any]], *, units: bool = True) -> dict[str, str]:
    """`system_views.settings` by name, without settings that have no value, and without former names where values have
    `units`."""
    return {
        str(row["name"]): str(row["value"])
        for row in rows
        if row["value"] is not None and not (units and OLD_NAMES.search(str(row["name"])))
    }


def promises(force: Mapping[str, str]) -> dict[str, str]:
    """Promise of commits and reads under settings in force, and the use of memory. Pure."""
    how, every = force.get("commitlog_sync", "not listed"), force.get("commitlog_sync_period", "")
    disk = f"synced to the disk every {every}" if how == "periodic" and every else "synced to the disk by then"
    return {
        f"{PROMISE}cassandra": "Cassandra acknowledges a write once as many replicas as the client asks for have it in "
        f"memory and in their log, {disk} (commitlog_sync = {how}); a write is one row, of which the newest time stamp "
        "counts, a read asks as many replicas as the client says, and memory is a buffer of the disk."
    }


def compare(asked: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Name to (requested, in force) for each setting that the node lists with another value, or does not list at
    all."""
    listed = {str(row["name"]): row["value"] for row in rows}
    differing: dict[str, tuple[str, str]] = {}
    for name, value in flatten(asked).items():
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            continue  # seed_provider and the like: the node lists its parts only, in its own form
        if looks_secret(name) or is_reference(value, name):
            continue  # a difference would be stored; a node whose secret is wrong does not come up
        # A class may be requested by its name alone; the node lists it with its parameters.
        key = next((one for one in (name, f"{name}.class_name") if one in listed), None)
        if key is not None:
            if listed[key] != NOT_SHOWN and normal(listed[key]) != normal(value):
                differing[name] = (str(value), str(listed[key]))
        elif not _within(name, value, listed):
            differing[name] = (str(value), "not listed")
    return differing


def _within(name: str, value: Any, listed: Mapping[str, Any]) -> bool:
    """Whether an ancestor of a nested setting is listed as a single text, and that text contains the value."""
    while "." in name:
        name = name.rpartition(".")[0]
        if name in listed:
            return listed[name] == NOT_SHOWN or str(value) in str(listed[name])
    return False


def option(command_line: Iterable[str], prefix: str) -> str | None:
    """The last option with a prefix, which is the one in force in the virtual machine; without the prefix."""
    values = [word.removeprefix(prefix) for word in command_line if word.startswith(prefix)]
    return values[-1] if values else None


def heap_mb(text: str) -> float | None:
    """A heap size as in `-Xmx` (bytes, k, m, g), in MiB."""
    match = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if match is None:
        return None
    return int(match[1]) * {"": 1 / 2**20, "k": 1 / 2**10, "m": 1.0, "g": 2.0**10}[match[2].lower()]
