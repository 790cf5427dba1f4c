"""File and column names of a store, shared by writer and reader."""

from __future__ import annotations

import polars as pl

FORMAT = 1

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
"""Folder of what was in `trials` and is no sealed attempt."""

TRIAL_JSON = "trial.json"
LINKS_JSON = "links.json"
FACTS = "facts"
INTERVALS = "intervals"
SAMPLES = "samples"
LOGS = "logs"
PARTIAL_PREFIX = "."
PARTIAL_SUFFIX = ".partial"

INTERVAL_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "phase": pl.String,
    "t_s": pl.Float64,
    "seconds": pl.Float64,
    "operation": pl.String,
    "outcome": pl.String,
    "measure": pl.String,
    "bucket_low_ns": pl.Int64,
    "bucket_high_ns": pl.Int64,
    "count": pl.Int64,
}
"""`intervals/<node>.parquet`: one row per occupied bucket of one second's histogram."""

SAMPLE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "t_s": pl.Float64,
    "metric": pl.String,
    "value": pl.Float64,
}
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
