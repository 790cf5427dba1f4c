"""Report input: the data of the page and its exports, read and analysed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from steelyard.analysis.results import Results
from steelyard.analysis.tables import tables
from steelyard.events.kept import NodesGauged
from steelyard.heavy import pl
from steelyard.judging.dilation import modelled_s
from steelyard.model.damage import Damage
from steelyard.model.facts import of_systems
from steelyard.model.gauged import Gauged
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, TrialRecord
from steelyard.reading import time_courses
from steelyard.reading.level_facts import LevelFact, facts_of_machines, facts_of_sites, level_facts
from steelyard.reading.node_traces import Trace, median_trials
from steelyard.reading.opened import Opened
from steelyard.reading.parallel import of_store
from steelyard.reading.time_courses import Curve, Timeline
from steelyard.reference.comparison import PublishedPair
from steelyard.store.journal import Entry
from steelyard.store.measured_again import MeasuredAgain
from steelyard.store.read import Store

MOST_TIMELINES = 60
"""Most trials whose intervals are read for the page; the page may show fewer."""


@dataclass(frozen=True)
class ReportInput:
    """Data of a report: plain values and frames; the report never opens a store."""

    study: Study
    results: Results
    records: Sequence[TrialRecord]
    """Every sealed attempt, in order of time."""
    plan: Plan | None = None
    traces: Sequence[Trace] = ()
    """Samples of the trials whose nodes are drawn, one trial per treatment."""
    timelines: Sequence[Timeline] = ()
    """Trials over time: the median trial of each treatment, then others that the reader may choose."""
    too_short: Sequence[Attempt] = ()
    """Picked trials with too few intervals for a time series."""
    curves: Sequence[Curve] = ()
    """Percentile curves of the treatments."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Node or `machine` or `system:<node>` to its facts, in the trial with the most nodes."""
    level_facts: Sequence[LevelFact] = ()
    """Facts that other levels have otherwise."""
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Machine of each laboratory to its facts, if there are several."""
    site_facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Site to the facts of one of its database nodes."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Every table of the results by its name, as `report --json` and the exports give it."""
    published: Sequence[PublishedPair] = ()
    """Published numbers with ours next to them, where the study repeats a publication that is shipped."""
    published_name: str = ""
    """Name of that publication."""
    damages: Sequence[Damage] = ()
    """Files of the store that were skipped, or read although they were changed."""
    gaugings: Sequence[tuple[str, Gauged]] = ()
    """Limits of the nodes as measured, before and after each start that asked for any."""
    measured_again: Sequence[MeasuredAgain] = ()
    """Sealed attempts that were removed or set aside and measured again."""
    lost_blocks: Sequence[int] = ()
    """Blocks that were lost in flight by other machines, and measured again."""
    made_s: float | None = None
    """When the page is made, seconds since the epoch; None leaves it out, so that equal stores give equal pages."""


def report_input(opened: Opened, *, courses: bool = True) -> ReportInput:
    """The data of a store's page. Samples and facts are read only for the trials that the page shows; without `courses`
    no time series within trials is read."""
    store, records, results = opened.store, opened.records, opened.results
    shown = median_trials(opened.cells, opened.values)
    samples = {record.key: store.samples(record) for record in shown}
    facts = {record.key: store.facts(record) for record in shown or records}
    lines, too_short = _timelines(opened, samples) if courses else ((), ())
    page_input = ReportInput(
        study=opened.study,
        plan=opened.plan,
        results=results,
        records=records,
        traces=tuple(Trace(record, samples[record.key], tuple(of_systems(facts[record.key]))) for record in shown),
        timelines=lines,
        too_short=too_short,
        curves=time_courses.curves(opened.within.histograms, opened.cells) if courses else (),
        facts=max(facts.values(), key=len),
        level_facts=level_facts(store, records),
        machines=facts_of_machines(store, records),
        site_facts=facts_of_sites(store, records),
        tables=tables(results),
        gaugings=_gaugings(store, records),
        measured_again=store.measured_again,
        lost_blocks=store.lost_blocks,
    )
    # Now everything that the page shows has been read.
    return replace(page_input, damages=store.damages)


def _gaugings(store: Store, records: Sequence[TrialRecord]) -> tuple[tuple[str, Gauged], ...]:
    """Limits as measured, each with the profile of its start; of a start without a sealed trial it is not known."""
    profiles = {record.planned_start: record.settings.node.profile for record in records}
    events = (entry.event for entry in store.journal())
    return tuple((profiles.get(event.start, ""), event.gauged) for event in events if isinstance(event, NodesGauged))


def _timelines(
    opened: Opened, samples: Mapping[Attempt, pl.DataFrame]
) -> tuple[tuple[Timeline, ...], tuple[Attempt, ...]]:
    """Time series of the picked trials, with a strip per node where `samples` has its readings; and the attempts that
    are too short for one."""
    picked = time_courses.picked(opened.records, opened.values, most=MOST_TIMELINES)
    tasks = [(record, opened.values.get(record.key), samples.get(record.key)) for record in picked]
    courses = of_store(_timeline, opened.store, tasks, opened.executor)
    short = tuple(record.key for record, course in zip(picked, courses, strict=True) if course is None)
    return tuple(course for course in courses if course is not None), short


def _timeline(store: Store, task: tuple[TrialRecord, float | None, pl.DataFrame | None]) -> Timeline | None:
    record, value, samples = task
    return time_courses.timeline(
        record, store.intervals(record), journal=_within(store.journal(), record), value=value,
        middle=samples is not None, samples=samples,
    )  # fmt: skip


def _within(journal: Sequence[Entry], record: TrialRecord) -> Sequence[Entry]:
    """The journal in the time of one trial."""
    if record.settings.node.dilation == 1:
        return journal
    return [entry if entry.t_s is None else replace(entry, t_s=modelled_s(record, entry.t_s)) for entry in journal]
