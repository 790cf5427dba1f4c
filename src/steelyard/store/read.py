"""Reader of a store: sealed trials only. Needs nothing but the folder.

Text that looks like a secret is redacted here too, so that a report on a store written before secret references existed
shows none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard import no_links
from steelyard.events.kept import BlockLost, LinksMeasured, NoiseFloorSought
from steelyard.format import count
from steelyard.heavy import pl
from steelyard.judging.noise_floor import Circumstances, FoundFloor, KeptFloor, circumstances, mismatch
from steelyard.model.damage import Damage
from steelyard.model.errors import OtherFormatError, StoreError
from steelyard.model.facts import of_machines
from steelyard.model.file_format import OTHER_VERSION, READS, other_format
from steelyard.model.outcome import ANSWERED
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.secret import redacted
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, TrialRecord
from steelyard.store import journal, layout, sealed
from steelyard.store.looks import looks, number_of
from steelyard.store.measured_again import MeasuredAgain, measured_again
from steelyard.store.plain_file import MOST_RECORD_BYTES, content_of, json_of, loaded, problem_of, sha256_of
from steelyard.store.plausible_rows import plausible
from steelyard.store.tables import problem_in, table

MEASURED_AGAIN: Final = "the next `steelyard run` measures it again"
CHANGED: Final = "it was changed after it was written: its SHA-256 is not the journal's"
PLAN_ANEW: Final = "the next `steelyard run` of the study rewrites it"
MOST_LINES: Final = 5
"""Lines of the journal that a damage names."""


class Store:
    """One study's folder. What cannot be read is skipped and kept in `damages`, as far as an answer is possible
    without it; otherwise a StoreError names the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._damages: dict[str, Damage] = {}
        self._tables: dict[tuple[str, str], tuple[Path, ...]] = {}
        """Trial's folder and part to the files that are as they were sealed."""
        self._facts: dict[Attempt, dict[str, dict[str, str]]] = {}
        self._journal: tuple[tuple[int, int], tuple[journal.Entry, ...]] | None = None
        if not no_links.is_there(folder / layout.STUDY_JSON):
            raise StoreError(
                f"{folder} is not a study's folder: it has no {layout.STUDY_JSON}",
                _hint_for(folder),
                path=str(folder),
            )

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Damages met so far, by file: of everything that was read."""
        return tuple(self._damages[file] for file in sorted(self._damages))

    def take(self, damages: Iterable[Damage]) -> None:
        """Damages that another process met in this store."""
        for damage in damages:
            self._pass_over(damage)

    def _pass_over(self, damage: Damage) -> None:
        # Only of the journal several damages are told: a line each.
        key = f"{damage.file}: {damage.what}" if damage.file == layout.EVENTS else damage.file
        self._damages.setdefault(key, damage)

    @property
    def study(self) -> Study:
        """The study as it was last run. Raises StoreError if it cannot be read."""
        path = self.folder / layout.STUDY_JSON
        try:
            read, sha256 = json_of(path)
            if not isinstance(read, dict):
                raise ValueError(f"a {type(read).__name__} where a table should be")
            if (version := read.get("format", READS)) != READS:
                raise OtherFormatError(f"{path} {other_format(version)}", OTHER_VERSION, path=str(path))
            study = Study.model_validate(redacted(read))
        except (OSError, ValueError, RecursionError) as error:
            what = f"the study cannot be read: {problem_of(error)}"
            hint = "restore it from a copy, or remove the file: `steelyard run` rewrites it from the study file"
            raise StoreError(f"{path}: {what}", hint, path=str(path), what=what) from error
        if not self._is_as_written(layout.STUDY_JSON, sha256):
            hint = "restore it from a copy, or run the study again: it is rewritten from the study file"
            self._pass_over(Damage(file=path.name, what=CHANGED, effect="read as it is now", hint=hint))
        return study

    @property
    def plan(self) -> Plan | None:
        """The plan; None, and a damage, if it is missing, unreadable or changed."""
        try:
            return self.read_plan()
        except StoreError as error:
            effect = "without it the missing trials are not known"
            self._pass_over(Damage(file=layout.PLAN, what=error.what, effect=effect, hint=error.hint))
            return None

    def read_plan(self) -> Plan:
        """The plan. Raises StoreError if it is missing, unreadable or changed."""
        path = self.folder / layout.PLAN
        try:
            content = content_of(path)
            plan = _plan_in(content)
        except (OSError, ValueError, RecursionError) as error:
            what = f"the plan cannot be read: {problem_of(error)}"
            raise StoreError(f"{path}: {what}", PLAN_ANEW, path=str(path), what=what) from error
        if not self._is_as_written(layout.PLAN, hashlib.sha256(content).hexdigest()):
            raise StoreError(f"{path}: {CHANGED}", PLAN_ANEW, path=str(path), what=CHANGED)
        return plan

    def _is_as_written(self, name: str, sha256: str) -> bool:
        """Whether a session wrote a file of this SHA-256; True where no line of the journal that can be read says."""
        # The journal is written first: what is in the file is in the journal too.
        known = journal.written(self.journal(), name)
        return not known or sha256 in known

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every sealed attempt, in order of time. Treatments are named as in the current plan, so that trials from
        before a factor was added appear in its column. Raises OtherFormatError for a record of another version."""
        kept = sealed.attempts(self.folder, self._seals())
        for damage in kept.damages:
            self._pass_over(damage)
        if kept.records and not self.journal():
            what = "the journal is missing or has no readable line"
            self._pass_over(Damage(file=layout.EVENTS, what=what, effect="nothing says which records were sealed"))
        plan = self.plan
        named = {trial.id: trial for trial in plan.trials} if plan else {}
        return tuple(as_planned(record, named) for record in kept.records)

    def attempts(self) -> frozenset[str]:
        """Folder names of attempts that are not drafts. Raises OSError if they cannot be listed."""
        try:
            kinds = no_links.entries(self.folder / layout.TRIALS, self.folder)
        except FileNotFoundError:
            return frozenset()
        folders = (name for name, kind in kinds.items() if kind is no_links.Kind.FOLDER)
        return frozenset(name for name in folders if not name.startswith(layout.PARTIAL_PREFIX))

    def attempt(self, name: str) -> TrialRecord:
        """One sealed attempt by its folder's name, with the treatment as recorded. Raises StoreError if it does not
        count as one, see `steelyard.store.sealed`."""
        return sealed.attempt(self.folder / layout.TRIALS / name, self._seals().get(name))

    def _seals(self) -> dict[str, sealed.Seal]:
        return sealed.seals(self.journal())

    def folder_of(self, record: TrialRecord) -> Path:
        """Folder of a sealed attempt."""
        return self.folder / layout.TRIALS / layout.trial_folder(record.id, record.attempt)

    def intervals(self, record: TrialRecord) -> pl.DataFrame:
        """Histogram buckets of every load node: `node` and the columns of `layout.INTERVAL_SCHEMA`."""
        return self._frames(record, layout.INTERVALS, layout.INTERVAL_SCHEMA)

    def answered(
        self, records: Iterable[TrialRecord], phases: Sequence[str], measures: Sequence[str] = ("response",)
    ) -> pl.LazyFrame:
        """Buckets of answered operations in the named phases of these trials: `trial` (its folder name, see
        `layout.trial_folder`), `node` and the columns of `layout.INTERVAL_SCHEMA`. Lazy: nothing is read before it is
        collected."""
        return self.operations(records, phases, measures).filter(pl.col("outcome").is_in(ANSWERED))

    def operations(
        self, records: Iterable[TrialRecord], phases: Sequence[str], measures: Sequence[str] = ("response",)
    ) -> pl.LazyFrame:
        """The same of all operations: failed ones, too."""
        return self._scan(records).filter(pl.col("measure").is_in(list(measures)) & pl.col("phase").is_in(list(phases)))

    def _scan(self, records: Iterable[TrialRecord]) -> pl.LazyFrame:
        """Intervals of several trials as one frame: `trial`, `node`, and the columns of the files."""
        files = (self._parquet(record, layout.INTERVALS) for record in records)
        paths = sorted({str(path) for part in files for path in part})
        if not paths:
            return pl.LazyFrame(schema={"trial": pl.String, "node": pl.String, **layout.INTERVAL_SCHEMA})
        # A path ends in TRIAL/intervals/NODE.parquet.
        parts = pl.col("path").str.split("/")
        return plausible(pl.scan_parquet(paths, include_file_paths="path"), layout.INTERVALS).select(
            parts.list.get(-3).alias("trial"),
            parts.list.get(-1).str.strip_suffix(".parquet").alias("node"),
            *layout.INTERVAL_SCHEMA,
        )

    def samples(self, record: TrialRecord) -> pl.DataFrame:
        """Samples of every node: `node` and the columns of `layout.SAMPLE_SCHEMA`."""
        return self._frames(record, layout.SAMPLES, layout.SAMPLE_SCHEMA)

    def _frames(self, record: TrialRecord, part: str, schema: layout.Columns) -> pl.DataFrame:
        empty = pl.DataFrame(schema={"node": pl.String, **schema})
        paths = self._parquet(record, part)
        frames = [table(path, self.folder).select(pl.lit(path.stem).alias("node"), *schema) for path in paths]
        return plausible(pl.concat([empty, *frames]), part)

    def _parquet(self, record: TrialRecord, part: str) -> tuple[Path, ...]:
        """Tables of a part of a trial that are as they were sealed and can be read."""
        key = (layout.trial_folder(record.id, record.attempt), part)
        if key not in self._tables:
            files = self._files(record, part, ".parquet")
            self._tables[key] = tuple(path for path in files if self._is_sound(path, part))
        return self._tables[key]

    def _is_sound(self, path: Path, part: str) -> bool:
        """Whether a table can be used; a damage if not, and if readers leave out rows that no instrument gives."""
        problem, odd = problem_in(path, self.folder, part)
        if problem:
            self._pass_over_file(path, problem)
        if odd:
            what = f"{count(odd, 'row')} with a number that is not a measurement: not finite, below 0 or too large"
            hint = f"restore it from a copy, or remove the trial's folder: {MEASURED_AGAIN}"
            effect = "these rows are left out"
            self._pass_over(Damage(file=str(path.relative_to(self.folder)), what=what, effect=effect, hint=hint))
        return not problem

    def _files(self, record: TrialRecord, part: str, suffix: str) -> list[Path]:
        """Files of a part of a trial that are as they were sealed, by name. Others are skipped: what is not there,
        what was changed, what the record does not know."""
        folder = self.folder_of(record)
        try:
            there = {f"{part}/{name}" for name in no_links.entries(folder / part, self.folder) if name.endswith(suffix)}
        except FileNotFoundError:
            there = set()
        except OSError as error:
            self._pass_over_file(folder / part, problem_of(error))
            there = set()
        named = {name for name in record.checksums if name.startswith(f"{part}/") and name.endswith(suffix)}
        return [folder / name for name in sorted(there | named) if self._is_sealed(record, name)]

    def _is_sealed(self, record: TrialRecord, name: str) -> bool:
        """Whether a trial's file is as it was sealed; a damage if not."""
        path, sha256 = self.folder_of(record) / name, record.checksums.get(name)
        what = ""
        try:
            read = sha256_of(path, self.folder)
        except FileNotFoundError:
            what = "it is missing"
        except OSError as error:
            what = problem_of(error)
        else:
            if sha256 is None and record.checksums:
                what = "the record of the trial does not know it"
            elif sha256 not in (None, read):
                what = "it was changed after it was sealed: its SHA-256 is not the record's"
        if what:
            self._pass_over_file(path, what)
        return not what

    def _pass_over_file(self, path: Path, what: str) -> None:
        self._pass_over(
            Damage(
                file=no_links.name_below(path, self.folder),
                what=what,
                effect="skipped: what rests on it is left out",
                hint=f"restore it from a copy, or remove the trial's folder: {MEASURED_AGAIN}",
            )
        )

    def facts(self, record: TrialRecord) -> dict[str, dict[str, str]]:
        """Facts by name: `n1`, `system:n1`, see `steelyard.model.facts`. Files are read once."""
        if record.key not in self._facts:
            read = {path: self._json(path, dict) for path in self._files(record, layout.FACTS, ".json")}
            self._facts[record.key] = {
                layout.facts_name(path.stem): {name: fact for name, fact in facts.items() if isinstance(fact, str)}
                for path, facts in read.items()
                if facts is not None
            }
        return self._facts[record.key]

    def first_facts(self, records: Iterable[TrialRecord]) -> dict[str, dict[str, dict[str, str]]]:
        """Machine of a laboratory to the facts of the first of its trials that has any."""
        first: dict[str, dict[str, dict[str, str]]] = {}
        for record in records:
            if record.machine_id not in first and (known := self.facts(record)):
                first[record.machine_id] = known
        return first

    def links(self, record: TrialRecord) -> list[dict[str, Any]]:
        """Measured paths between the nodes of a trial."""
        name = layout.LINKS_JSON
        path = self.folder_of(record) / name
        if name not in record.checksums and not no_links.is_there(path):
            return []
        return (self._json(path, list) if self._is_sealed(record, name) else None) or []

    @property
    def links_after(self) -> dict[str, Sequence[Mapping[str, Any]]]:
        """Start to the paths between its nodes as measured after its last trial. They are in the journal, because a
        trial is sealed before it is known to be the last."""
        events = (entry.event for entry in self.journal())
        return {event.cluster: event.links for event in events if isinstance(event, LinksMeasured)}

    def _json(self, path: Path, form: type[Any]) -> Any:
        """Content of a file, without secrets; None, and a damage, if it is not of this form."""
        try:
            read, _ = json_of(path, self.folder, MOST_RECORD_BYTES)
            if not isinstance(read, form):
                raise ValueError(f"a {type(read).__name__} where a {form.__name__} should be")
        except (OSError, ValueError, RecursionError) as error:
            self._pass_over_file(path, f"it cannot be read: {problem_of(error)}")
            return None
        return redacted(read)

    def circumstances(self, records: Sequence[TrialRecord]) -> tuple[Circumstances, ...]:
        """Distinct circumstances of the trials: settings and machines; the machines are those of the first trial with
        facts in each laboratory."""
        facts = self.first_facts(records)
        machines = [machine for known in facts.values() for machine in of_machines(known).values()]
        settings = {json.dumps(one.settings.root, sort_keys=True): one.settings for one in records}
        # A start that failed was not warmed up; the study was made with it all the same.
        warmed_up = any(one.server_warm_up is not None for one in records)
        return tuple(circumstances(one, machines, warmed_up=warmed_up) for one in settings.values())

    def noise_floor(self, records: Sequence[TrialRecord]) -> FoundFloor:
        """The noise floor that the laboratory copied into the store, if it is valid for these trials; else the reason
        why there is none."""
        path = self.folder / layout.NOISE_FLOOR
        sought = [entry.event for entry in self.journal() if isinstance(entry.event, NoiseFloorSought)]
        written = next((event.sha256 for event in reversed(sought) if event.found), None)
        try:
            read, sha256 = json_of(path, most_bytes=MOST_RECORD_BYTES)
            floor = KeptFloor.model_validate(read)
            problem = "" if written in (None, sha256) else "it was changed: its SHA-256 is not the journal's"
        except FileNotFoundError:
            if written is None:
                return FoundFloor()
            problem = "it is missing"
        except (OSError, ValueError) as error:
            problem = f"it cannot be read: {problem_of(error)}"
        if problem:
            hint = "restore it from a copy; the next `steelyard run` rewrites it"
            self._pass_over(Damage(file=path.name, what=problem, effect="skipped", hint=hint))
            return FoundFloor(why=f"{path}: {problem}, and was skipped")
        why = mismatch(floor, self.circumstances(records))
        if why:
            return FoundFloor(why=f"{path.name} of study {floor.study} does not hold: {why}")
        return FoundFloor(floor=floor, why="")

    def _read_journal(self) -> tuple[journal.Entry, ...]:
        try:
            entries = journal.read(self.folder / layout.EVENTS, redacted)
        except StoreError as error:
            effect = "nothing says which records were sealed"
            self._pass_over(Damage(file=layout.EVENTS, what=error.what, effect=effect, hint=error.hint))
            return ()
        last = entries[-1].number if entries else 0
        torn = [entry.number for entry in entries if entry.event is None]
        if torn:
            lines = f"line{'s' if len(torn) > 1 else ''} {', '.join(str(number) for number in torn[:MOST_LINES])}"
            more = f" and {len(torn) - MOST_LINES} more" if len(torn) > MOST_LINES else ""
            what = f"{lines}{more} cannot be read: {journal.why_unreadable(torn, last)}"
            effect = "skipped; what was noted there is not known"
            hint = "restore it from a copy if you have one; `steelyard run` continues without these lines"
            damage = Damage(file=layout.EVENTS, what=what, effect=effect, hint=hint, harmless=True)
            self._pass_over(damage)
        return tuple(entry for entry in entries if entry.event is not None)

    def journal(self) -> tuple[journal.Entry, ...]:
        """The journal without secrets. A line that cannot be read is skipped, and is a harmless damage."""
        stamp = self._stamp(layout.EVENTS)
        if self._journal is None or self._journal[0] != stamp:
            self._journal = stamp, self._read_journal()
        return self._journal[1]

    @property
    def looks(self) -> tuple[float, ...]:
        """Times of the looks at the study, see `store.looks`."""
        return looks(self.journal())

    @property
    def look(self) -> int:
        """Which look its trials give, from 1."""
        return number_of(self.looks)

    @property
    def measured_again(self) -> tuple[MeasuredAgain, ...]:
        """Sealed attempts that were removed or set aside and measured again, as the journal knows."""
        return measured_again(self.journal())

    @property
    def lost_blocks(self) -> tuple[int, ...]:
        """Blocks that several laboratories measured and that were lost in flight, as the journal knows."""
        return tuple(entry.event.block for entry in self.journal() if isinstance(entry.event, BlockLost))

    def _stamp(self, name: str) -> tuple[int, int]:
        with contextlib.suppress(OSError):
            status = (self.folder / name).lstat()
            return status.st_mtime_ns, status.st_size
        return 0, 0


def _plan_in(content: bytes) -> Plan:
    """The plan in a file. Raises ValueError, with the line, if it is torn."""
    lines = content.decode("utf-8").splitlines()
    read: list[Any] = []
    for number, line in enumerate(lines, start=1):
        try:
            read.append(redacted(loaded(line)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {problem_of(error)}") from error
    if not read or not isinstance(read[0], dict):
        raise ValueError("it has no first line")
    plan = Plan.model_validate({**read[0], "trials": [PlannedTrial.model_validate(line) for line in read[1:]]})
    twice = [trial for trial, times in Counter(trial.id for trial in plan.trials).items() if times > 1]
    if twice:
        raise ValueError(f"trial {twice[0]} is planned more than once")
    return plan


def as_planned(record: TrialRecord, named: Mapping[str, PlannedTrial]) -> TrialRecord:
    """The record with its treatment named as in the current plan (`named`: id to trial)."""
    planned = named.get(record.id)
    if planned is None or planned.treatment == record.treatment:
        return record
    return record.model_copy(update={"treatment": planned.treatment, "hard": planned.hard})


def _hint_for(folder: Path) -> str:
    if (folder / layout.EVENTS).is_file() or (folder / layout.TRIALS).is_dir():
        return (
            "a run ended here before it wrote its study (refused, interrupted, a full disk), or the file was removed: "
            "`steelyard run STUDY` writes it"
        )
    if folder.suffix == ".toml":
        return f"that is a study's file; its results are in a folder of its name, such as store/{folder.stem}"
    inside = [path.name for path in _studies_in(folder)]
    return f"name one of the studies in it: {', '.join(inside)}" if inside else "run a study first: steelyard run STUDY"


def study_folder(path: Path) -> Path:
    """The study's folder at `path`: itself, or the only one in it."""
    if no_links.is_there(path / layout.STUDY_JSON):
        return path
    inside = _studies_in(path)
    return inside[0] if len(inside) == 1 else path


def _studies_in(folder: Path) -> list[Path]:
    """Folders of studies in a folder of stores. A link is not followed to one: name where it leads."""
    return sorted(found.parent for found in folder.glob(f"*/{layout.STUDY_JSON}") if not found.parent.is_symlink())
