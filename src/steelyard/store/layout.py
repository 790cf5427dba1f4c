"""File and column names of a store, shared by writer and reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from steelyard.heavy import pl

STUDY_TOML = "study.toml"
STUDY_JSON = "study.json"
PLAN = "plan.jsonl"
EVENTS = "events.jsonl"
LOCK = ".lock"
NOISE_FLOOR = "noise-floor.json"
LIVE = ".live.json"
LIVE_FORMAT = 1
TRIALS = "trials"
SET_ASIDE = "set-aside"
"""Folder of what was in `trials` and is not a sealed attempt."""

TRIAL_JSON = "trial.json"
LINKS_JSON = "links.json"
FACTS = "facts"
INTERVALS = "intervals"
SAMPLES = "samples"
LOGS = "logs"
PARTIAL_PREFIX = "."
PARTIAL_SUFFIX = ".partial"


class Columns(Mapping[str, "type[pl.DataType]"]):
    """Columns of a frame and their types, which are named so that no library is loaded for a name of a file."""

    def __init__(self, **types: str) -> None:
        self._types = types

    def __getitem__(self, column: str) -> type[pl.DataType]:
        named: type[pl.DataType] = getattr(pl, self._types[column])
        return named

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


INTERVAL_SCHEMA: Final = Columns(
    phase="String",
    t_s="Float64",
    seconds="Float64",
    operation="String",
    outcome="String",
    measure="String",
    bucket_low_ns="Int64",
    bucket_high_ns="Int64",
    count="Int64",
)
"""`intervals/<node>.parquet`: one row per occupied bucket of one second's histogram."""

SAMPLE_SCHEMA: Final = Columns(t_s="Float64", metric="String", value="Float64")
"""`samples/<node>.parquet`: one row per reading."""


def trial_folder(trial_id: str, attempt: int) -> str:
    """Folder of an attempt: the trial's id, with the suffix `.2`, `.3` ... for repeated attempts."""
    return trial_id if attempt == 1 else f"{trial_id}.{attempt}"


def facts_file(name: str) -> str:
    """File name of facts by their name (`n1`, `system:n1`), in the folder `facts`."""
    return f"{name.replace(':', '.')}.json"


def facts_name(stem: str) -> str:
    """Name of the facts in a file, from the file's stem."""
    return stem.replace(".", ":", 1)
