"""Reader of a store: sealed trials only. Needs nothing but the folder.

Text that looks like a secret is redacted here too, so that a report on a store written before secret references existed
shows none.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from steelyard.heavy import pl
from steelyard.judging.noise_floor import Circumstances, FoundFloor, KeptFloor, circumstances, mismatch
from steelyard.model.errors import StoreError
from steelyard.model.facts import of_machines
from steelyard.model.outcome import ANSWERED
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.secret import redacted
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store import journal, layout

FREE_TEXT = ("settings", "treatment", "verdict")
"""Fields of a trial's record that hold text from the study's author or from nodes: secrets in them are redacted."""


class Store:
    """One study's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / layout.STUDY_JSON).is_file():
            raise StoreError(
                f"{folder} is not a study's folder: it has no {layout.STUDY_JSON}",
                _hint_for(folder),
                path=str(folder),
            )

    @property
    def study(self) -> Study:
        """The study as it was last run."""
        path = self.folder / layout.STUDY_JSON
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if (version := read.get("format", layout.FORMAT)) != layout.FORMAT:
                raise StoreError(
                    f"{path} has format {version}, this version reads {layout.FORMAT}", "use the version that wrote it"
                )
            # Written before there was a server warm-up, and so without one.
            return Study.model_validate(redacted({"server_warm_up": {"mode": "off"}, **read}))
        except (ValueError, AttributeError, RecursionError) as error:
            raise StoreError(f"{path} cannot be read: {error}", "was it written by another version?") from error

    @property
    def plan(self) -> Plan | None:
        """The plan, or None if it was never written."""
        path = self.folder / layout.PLAN
        if not path.is_file():
            return None
        head, *lines = (redacted(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
        trials = tuple(PlannedTrial.model_validate(line) for line in lines)
        return Plan.model_validate({**head, "trials": trials})

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every sealed attempt, in order of time. Treatments are named as in the current plan, so that trials from
        before a factor was added appear in its column."""
        plan = self.plan
        named = {trial.id: trial for trial in plan.trials} if plan else {}
        records = [
            as_planned(self._record(path.parent), named)
            for path in (self.folder / layout.TRIALS).glob(f"*/{layout.TRIAL_JSON}")
            if not path.parent.name.startswith(layout.PARTIAL_PREFIX)
        ]
        return tuple(sorted(records, key=lambda record: (record.begun_s, record.id, record.attempt)))

    def attempts(self) -> frozenset[str]:
        """Folder names of attempts that are not drafts."""
        folder = self.folder / layout.TRIALS
        if not folder.is_dir():
            return frozenset()
        return frozenset(
            one.name for one in os.scandir(folder) if one.is_dir() and not one.name.startswith(layout.PARTIAL_PREFIX)
        )

    def attempt(self, name: str) -> TrialRecord:
        """One sealed attempt by its folder's name, with the treatment as recorded. Raises StoreError if it is
        incomplete or of another format."""
        folder = self.folder / layout.TRIALS / name
        try:
            return self._record(folder)
        except OSError as error:
            message = f"{folder} has no {layout.TRIAL_JSON} that can be read: {error.strerror}"
            raise StoreError(message, "was it copied to its end?", path=str(folder)) from error

    def _record(self, folder: Path) -> TrialRecord:
        path = folder / layout.TRIAL_JSON
        try:
            read = json.loads(text_of(path))
            version = read.get("format")
            if version != layout.FORMAT:
                raise StoreError(
                    f"{path} has format {version}, this version reads {layout.FORMAT}", "use the version that wrote it"
                )
            return TrialRecord.model_validate({**read, **{key: redacted(read[key]) for key in FREE_TEXT}})
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise StoreError(
                f"{path} cannot be read: {error}", "restore it from a copy, or remove its folder"
            ) from error

    def folder_of(self, record: TrialRecord) -> Path:
        """Folder of a sealed attempt."""
        return self.folder / layout.TRIALS / layout.trial_folder(record.id, record.attempt)

    def intervals(self, record: TrialRecord) -> pl.DataFrame:
        """Histogram buckets of every load node: `node` and the columns of `layout.INTERVAL_SCHEMA`."""
        return self._frames(record, layout.INTERVALS, layout.INTERVAL_SCHEMA)

    def histograms(self, records: Iterable[TrialRecord], phases: Sequence[str]) -> pl.DataFrame:
        """Buckets of response and service time of answered operations, summed over these trials, nodes and seconds of
        the named phases: `measure`, `bucket_low_ns`, `bucket_high_ns`, `count`. Does not hold all rows in memory."""
        keys = ("measure", "bucket_low_ns", "bucket_high_ns")
        answered = self.answered(records, phases, ("response", "service"))
        return answered.group_by(keys).agg(pl.col("count").sum()).collect(engine="streaming").sort(keys)

    def answered(
        self, records: Iterable[TrialRecord], phases: Sequence[str], measures: Sequence[str] = ("response",)
    ) -> pl.LazyFrame:
        """Buckets of answered operations in the named phases of these trials: `trial` (its folder name, see
        `layout.trial_folder`), `node` and the columns of `layout.INTERVAL_SCHEMA`. Lazy: nothing is read before it is
        collected."""
        return self._scan(records).filter(
            pl.col("measure").is_in(list(measures))
            & pl.col("outcome").is_in(ANSWERED)
            & pl.col("phase").is_in(list(phases))
        )

    def _scan(self, records: Iterable[TrialRecord]) -> pl.LazyFrame:
        """Intervals of several trials as one frame: `trial`, `node`, and the columns of the files."""
        folders = {self.folder_of(record) / layout.INTERVALS for record in records}
        paths = sorted(str(path) for folder in folders for path in folder.glob("*.parquet"))
        if not paths:
            return pl.LazyFrame(schema={"trial": pl.String, "node": pl.String, **layout.INTERVAL_SCHEMA})
        # A path ends in TRIAL/intervals/NODE.parquet.
        parts = pl.col("path").str.split("/")
        return pl.scan_parquet(paths, include_file_paths="path").select(
            parts.list.get(-3).alias("trial"),
            parts.list.get(-1).str.strip_suffix(".parquet").alias("node"),
            *layout.INTERVAL_SCHEMA,
        )

    def samples(self, record: TrialRecord) -> pl.DataFrame:
        """Samples of every node: `node` and the columns of `layout.SAMPLE_SCHEMA`."""
        return self._frames(record, layout.SAMPLES, layout.SAMPLE_SCHEMA)

    def _frames(self, record: TrialRecord, part: str, schema: layout.Columns) -> pl.DataFrame:
        paths = sorted((self.folder_of(record) / part).glob("*.parquet"))
        empty = pl.DataFrame(schema={"node": pl.String, **schema})
        frames = [pl.read_parquet(path).select(pl.lit(path.stem).alias("node"), *schema) for path in paths]
        return pl.concat([empty, *frames])

    def facts(self, record: TrialRecord) -> dict[str, dict[str, str]]:
        """Facts by name: `n1`, `system:n1`, see `steelyard.model.facts`."""
        folder = self.folder_of(record) / layout.FACTS
        return {
            layout.facts_name(path.stem): redacted(json.loads(path.read_text(encoding="utf-8")))
            for path in sorted(folder.glob("*.json"))
        }

    def links(self, record: TrialRecord) -> list[dict[str, Any]]:
        """Measured paths between the nodes of a trial."""
        path = self.folder_of(record) / layout.LINKS_JSON
        return list(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else []

    def circumstances(self, records: Sequence[TrialRecord]) -> tuple[Circumstances, ...]:
        """Distinct circumstances of the trials: settings and machines; the machines are those of the first trial with
        facts."""
        facts = next((known for one in records if (known := self.facts(one))), {})
        machines = list(of_machines(facts).values())
        settings = {json.dumps(one.settings.root, sort_keys=True): one.settings for one in records}
        # A start that failed was not warmed up; the study was made with it all the same.
        warmed_up = any(one.server_warm_up is not None for one in records)
        return tuple(circumstances(one, machines, warmed_up=warmed_up) for one in settings.values())

    def noise_floor(self, records: Sequence[TrialRecord]) -> FoundFloor:
        """The noise floor that the laboratory copied into the store, if it is valid for these trials; else the reason
        why there is none."""
        path = self.folder / layout.NOISE_FLOOR
        if not path.is_file():
            return FoundFloor()
        try:
            floor = KeptFloor.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValidationError) as error:
            return FoundFloor(why=f"{path} cannot be read ({type(error).__name__}) and was passed over")
        why = mismatch(floor, self.circumstances(records))
        if why:
            return FoundFloor(why=f"{path.name} of study {floor.study} does not hold: {why}")
        return FoundFloor(floor=floor, why="")

    def journal(self) -> tuple[journal.Entry, ...]:
        """The journal without secrets. A line torn by a power cut is skipped."""
        path = self.folder / layout.EVENTS
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return tuple(entry for entry in journal.entries(text, redacted) if entry.event is not None)


def as_planned(record: TrialRecord, named: Mapping[str, PlannedTrial]) -> TrialRecord:
    """The record with its treatment named as in the current plan (`named`: id to trial)."""
    planned = named.get(record.id)
    if planned is None or planned.treatment == record.treatment:
        return record
    return record.model_copy(update={"treatment": planned.treatment, "hard": planned.hard})


def text_of(path: Path) -> str:
    """Text of a regular file. Raises OSError for anything else: reading a pipe or a device that somebody put there (a
    store may come from anybody) would block, or never end."""
    with open(path, encoding="utf-8", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return handle.read()


def _hint_for(folder: Path) -> str:
    inside = sorted(path.parent.name for path in folder.glob(f"*/{layout.STUDY_JSON}"))
    return f"name one of the studies in it: {', '.join(inside)}" if inside else "run a study first: steelyard run STUDY"


def open_store(path: Path) -> Store:
    """The store at `path`: a study's folder, or a folder that holds exactly one. Raises StoreError."""
    if (path / layout.STUDY_JSON).is_file():
        return Store(path)
    inside = sorted(found.parent for found in path.glob(f"*/{layout.STUDY_JSON}"))
    return Store(inside[0]) if len(inside) == 1 else Store(path)
