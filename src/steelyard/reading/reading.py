"""Python interface to a store: trials, estimates, percentiles, time series within trials, node use, comparisons.

Every frame is a polars `DataFrame`. Everything is computed on first use, and once.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from steelyard.analysis.narrative.weaker_checks import not_made, weakened
from steelyard.analysis.tables import columns, tables
from steelyard.format import listed
from steelyard.heavy import pl
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord, by_cell
from steelyard.reading.comparison import Comparison, compare
from steelyard.reading.node_usage import usage_of
from steelyard.reading.opened import Opened, sealed_trials
from steelyard.reading.published import PublishedComparison, compare_with_published, with_published
from steelyard.reading.report_input import ReportInput, report_input
from steelyard.reading.within_trials import answered, series
from steelyard.store.modelled import open_store
from steelyard.store.read import Store

COURSE_COLUMNS = ("trial_id", "attempt", "second", "response_ms_mean", "throughput_per_s")
MOST_ANALYSED = 200
"""Attempts of a study up to which `limits` analyses it: more would take half a minute."""


def read(path: str | Path, executor: Executor | None = None) -> Reading:
    """A `Reading` of the study's folder at `path`, or of the only one in it. `executor`: reads within trials, see
    `steelyard.reading.parallel`; None: this process does.

    Raises StoreError if there is none, if it has no sealed trial yet, or if its study cannot be read. Other damaged
    files are skipped, see `Reading.damages`.
    """
    return reading_of(open_store(Path(path)), executor)


def reading_of(store: Store, executor: Executor | None = None) -> Reading:
    """A store's trials at its look. Raises StoreError if it has none."""
    return Reading(store, store.study, sealed_trials(store), store.look, executor)


def limits(store: Store, records: Sequence[TrialRecord]) -> Sequence[str]:
    """Caveats of the answer of a complete study, the most important first. Of many attempts only the checks that were
    not made as usual, which need no analysis."""
    if len(records) <= MOST_ANALYSED:
        return reading_of(store).results.caveats
    rest = f"More may limit it: the report has it, which reads all {len(records)} attempts."
    return (*weakened(store.study), *not_made(records), rest)


class Tables(dict[str, pl.DataFrame]):
    """Tables by name."""

    def __missing__(self, name: str) -> pl.DataFrame:
        """Raises KeyError with the most similar names."""
        near = difflib.get_close_matches(name, self, n=3)
        known = f"did you mean {listed(near, 'or')}?" if near else f"there are {listed(list(self))}"
        raise KeyError(f"no table {name!r}: {known}")


@dataclass(frozen=True, repr=False, eq=False)
class Reading(Opened):
    """One store, read once. Trials that are sealed later are not seen: read again."""

    def __repr__(self) -> str:
        return f"Reading({self.study.study.name!r}, {len(self.records)} sealed attempts, {self.store.folder})"

    @property
    def trials(self) -> pl.DataFrame:
        """One row per attempt: id, block, start, outcome, a column per factor, a column per response (units are the
        last word of their names), `used` (valid and past the warm-up trials)."""
        return self.frame.data

    @cached_property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Every table of the report by its name, as `report --json` and `--tables` give it."""
        return Tables(tables(self.results))

    @property
    def answer(self) -> pl.DataFrame:
        """The first table of the page: the compared levels with their values, changes and verdicts."""
        return self.tables["answer"]

    @cached_property
    def meanings(self) -> Mapping[str, Mapping[str, str]]:
        """Meaning and unit of each column of each table."""
        return columns(self.results)

    @property
    def estimates(self) -> pl.DataFrame:
        """One row per treatment and response: mean, median, quartiles and spread over trials and over starts, with
        intervals, n and method."""
        return self.tables["summary"]

    @property
    def percentiles(self) -> pl.DataFrame:
        """One row per used trial and percentile of its response time, ms, with the interval that its count supports."""
        return self.tables["percentile"]

    @cached_property
    def courses(self) -> pl.DataFrame:
        """One row per second of the measured phases of each used trial: `trial_id`, `attempt`, `second` (from 0),
        `response_ms_mean`, `throughput_per_s`; seconds without an answered operation have no row."""
        frames = [
            frame.with_columns(
                trial_id=pl.lit(trial_id), attempt=pl.lit(attempt, pl.Int64), second=pl.col("place").cast(pl.Int64)
            ).select(COURSE_COLUMNS)
            for group in by_cell(self._used).values()
            for (trial_id, attempt), frame in series(answered(self.store, group), group)
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(COURSE_COLUMNS, pl.Float64))

    @cached_property
    def usage(self) -> pl.DataFrame:
        """One row per used trial, node and metric: `trial_id`, `attempt`, `node`, `role` (database or load), `metric`,
        `readings`, and `mean` and `max` over the measured phases without the warm-up, in the metric's unit."""
        return usage_of(self.store, self._used)

    @property
    def _used(self) -> list[TrialRecord]:
        rows = self.trials.filter("used").select("trial_id", "attempt").rows()
        keys = {(str(trial), int(attempt)) for trial, attempt in rows}
        return [record for record in self.records if record.key in keys]

    def compare(
        self,
        other: Reading | None = None,
        *,
        a: Mapping[str, Level] | Sequence[str] = (),
        b: Mapping[str, Level] | Sequence[str] = (),
        response: str | None = None,
        margin_percent: float | None = None,
    ) -> Comparison:
        """This store against another, or two treatments of this one: `reading.compare(a={"nodes": 1}, b={"nodes": 3})`.

        See `steelyard.reading.comparison.compare`. Raises StudyError for what cannot be compared.
        """
        second = self if other is None else other
        return compare(self, second, a=a, b=b, response=response, margin_percent=margin_percent)

    def published(self, name: str, *, a: Sequence[str] = (), b: Sequence[str] = ()) -> PublishedComparison:
        """Own results next to a publication that is shipped, such as `richardson2017`; see `compare_with_published`."""
        return compare_with_published(self, name, a=a, b=b)

    def report_input(self, *, courses: bool = True) -> ReportInput:
        """Input of the page and its exports, published numbers included; without `courses` no time series within trials
        is read."""
        return with_published(self, report_input(self, courses=courses))
