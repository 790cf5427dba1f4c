"""Python interface to a store: trials, estimates, percentiles, time series within trials, node use, comparisons.

Every frame is a polars `DataFrame`. Everything is computed on first use, and once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from steelyard.analysis.frame import TrialFrame, frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.tables import columns, tables
from steelyard.heavy import pl
from steelyard.model.damage import Damage
from steelyard.model.named_level import Level
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import CellKey, TrialRecord
from steelyard.reading.comparison import Comparison, Opened, compare, opened
from steelyard.reading.measured import with_links_after
from steelyard.reading.node_usage import usage_of
from steelyard.reading.published import PublishedComparison, compare_with_published
from steelyard.reading.report_input import ReportInput, report_input, results_of
from steelyard.reading.seconds import series

COURSE_COLUMNS = ("trial_id", "attempt", "second", "response_ms_mean", "throughput_per_s")


def read(path: str | Path) -> Reading:
    """A `Reading` of the study's folder at `path`, or of the only one in it.

    Raises StoreError if there is none, if it has no sealed trial yet, or if its study cannot be read. Other damaged
    files are skipped, see `Reading.damages`.
    """
    return Reading(opened(path))


class Reading:
    """One store, read once. Trials that are sealed later are not seen: read again."""

    def __init__(self, source: Opened) -> None:
        self._source = source

    def __repr__(self) -> str:
        return f"Reading({self.study.study.name!r}, {len(self.records)} sealed attempts, {self._source.store.folder})"

    @property
    def study(self) -> Study:
        """The study as it was last run."""
        return self._source.study

    @cached_property
    def plan(self) -> Plan | None:
        """The plan; None in a store that has none."""
        return self._source.store.plan

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Files of the store that were skipped so far, or read although they were changed: what rests on them is
        not in the numbers. It grows with what is read."""
        return self._source.store.damages

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """Every sealed attempt as `trial.json` has it, in order of time."""
        return self._source.records

    @cached_property
    def frame(self) -> TrialFrame:
        """The trial frame: what every function of `steelyard.analysis` takes. It has the measures that were sealed with
        the trials, and the covariates of every start."""
        return frame_of(with_links_after(self._source.store, self.records), self.study)

    @property
    def trials(self) -> pl.DataFrame:
        """One row per attempt: id, block, start, outcome, a column per factor, a column per response (units are the
        last word of their names), `used` (valid and past the warm-up trials)."""
        return self.frame.data

    @cached_property
    def results(self) -> Results:
        """All results of the analysis as typed values, as the report shows them."""
        return results_of(self._source.store, self.records)

    @cached_property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Every table of the report by its name, as `report --json` and `--tables` give it."""
        return tables(self.results)

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
        used = {(str(row[0]), int(row[1])) for row in self.trials.filter("used").select("trial_id", "attempt").rows()}
        groups: dict[CellKey, list[TrialRecord]] = {}
        for record in self.records:
            if record.key in used:
                groups.setdefault(record.cell, []).append(record)
        frames = [
            frame.with_columns(
                trial_id=pl.lit(trial_id), attempt=pl.lit(attempt, pl.Int64), second=pl.col("place").cast(pl.Int64)
            ).select(COURSE_COLUMNS)
            for group in groups.values()
            for (trial_id, attempt), frame in series(self._source.store, group)
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(COURSE_COLUMNS, pl.Float64))

    @cached_property
    def usage(self) -> pl.DataFrame:
        """One row per used trial, node and metric: `trial_id`, `attempt`, `node`, `role` (database or load), `metric`,
        `readings`, and `mean` and `max` over the measured phases without the warm-up, in the metric's unit."""
        used = self.trials.filter("used").select("trial_id", "attempt").rows()
        keys = {(str(trial), int(attempt)) for trial, attempt in used}
        return usage_of(self._source.store, [record for record in self.records if record.key in keys])

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
        second = self._source if other is None else other._source
        return compare(self._source, second, a=a, b=b, response=response, margin_percent=margin_percent)

    def published(self, name: str, *, a: Sequence[str] = (), b: Sequence[str] = ()) -> PublishedComparison:
        """Own results next to a publication that is shipped, such as `richardson2017`; see `compare_with_published`."""
        return compare_with_published(self._source, name, a=a, b=b)

    def report_input(self, *, courses: bool = True) -> ReportInput:
        """Input of the page and its exports; without `courses` no time series within trials is read."""
        return report_input(self._source.store, courses=courses, records=self.records, results=self.results)
