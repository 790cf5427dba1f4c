"""Report input: the data of the page and its exports, read and analysed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.tables import tables
from steelyard.events.kept import NodesGauged
from steelyard.heavy import pl
from steelyard.judging.dilation import modelled_s
from steelyard.model.damage import Damage
from steelyard.model.errors import StoreError
from steelyard.model.facts import emulated_processor, isolation, of_machines, of_systems
from steelyard.model.gauged import Gauged
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, CellKey, TrialRecord
from steelyard.reading import time_courses
from steelyard.reading.level_facts import LevelFact, level_facts, of_a_database
from steelyard.reading.measured import with_links_after
from steelyard.reading.node_traces import Trace, median_trials
from steelyard.reading.seconds import within_trials
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
    made_s: float | None = None
    """When the page is made, seconds since the epoch; None leaves it out, so that equal stores give equal pages."""


def sealed_trials(store: Store) -> tuple[TrialRecord, ...]:
    """Every sealed attempt of a store, in order of time. Raises StoreError if there is none."""
    records = store.trials()
    damages = [damage.words() for damage in store.damages if not damage.harmless]
    if not records and damages:
        more = f" and {len(damages) - 1} more" if len(damages) > 1 else ""
        raise StoreError(
            f"{store.folder} has no sealed trial that can be read: {damages[0]}{more}",
            f"`steelyard verify {store.folder}` names all; restore the store from a copy, or run the study again",
            path=str(store.folder),
        )
    if not records:
        raise StoreError(
            f"{store.folder} has no sealed trial yet",
            "wait for the first trial, or run the study",
            path=str(store.folder),
        )
    return records


def results_of(store: Store, records: Sequence[TrialRecord]) -> Results:
    """All results of a store's trials: across trials, and of the seconds within them."""
    study = store.study
    records = with_links_after(store, records)
    floor = store.noise_floor(records)
    within = within_trials(store, records)
    return analyse(
        records, study, seed=study.design.seed, within=within, floor=floor, plan=store.plan,
        emulated=_emulated(store, records), look=store.look,
    )  # fmt: skip


def _facts_of_sites(store: Store, records: Sequence[TrialRecord]) -> Mapping[str, Mapping[str, str]]:
    """Site to the facts of the first database node of its first trial that has any."""
    of_sites: dict[str, Mapping[str, str]] = {}
    for record in records:
        if not of_sites.get(site := record.settings.site.name):
            of_sites[site] = of_a_database(store.facts(record))
    return of_sites


def _emulated(store: Store, records: Sequence[TrialRecord]) -> bool:
    """Whether processors of any start on virtual machines were emulated; one trial of each such start is read."""
    of_sites = _facts_of_sites(store, records)
    virtual = {site for site, facts in of_sites.items() if isolation(facts) == "virtual machine"}
    starts = {record.start: record for record in records if record.settings.site.name in virtual}
    machines = (of_machines(store.facts(record)).values() for record in starts.values())
    return any(emulated_processor(facts) for nodes in machines for facts in nodes)


def report_input(
    store: Store,
    *,
    courses: bool = True,
    records: Sequence[TrialRecord] | None = None,
    results: Results | None = None,
) -> ReportInput:
    """Read a store and analyse it.

    Samples and facts are read only for the trials that the page shows; without `courses` no time series within trials
    is read. A caller that has `records` and `results` passes them to avoid a second reading. Raises StoreError if the
    store has no sealed trial.
    """
    records = records or sealed_trials(store)
    results = results_of(store, records) if results is None else results
    used = {(point.trial_id, point.attempt): point.value for point in results.of(Point) if point.used}
    shown = median_trials(records, used)
    samples = {record.key: store.samples(record) for record in shown}
    lines, too_short = _timelines(store, records, used, samples) if courses else ((), ())
    largest = max(shown or records, key=lambda record: len(store.facts(record)))
    page_input = ReportInput(
        study=store.study,
        plan=store.plan,
        results=results,
        records=records,
        traces=tuple(Trace(record, samples[record.key], tuple(of_systems(store.facts(record)))) for record in shown),
        timelines=lines,
        too_short=too_short,
        curves=_curves(store, records, used) if courses else (),
        facts=store.facts(largest),
        level_facts=level_facts(store, records),
        site_facts=_facts_of_sites(store, records),
        tables=tables(results),
        gaugings=_gaugings(store, records),
        measured_again=store.measured_again,
    )
    # Now everything that the page shows has been read.
    return replace(page_input, damages=store.damages)


def _gaugings(store: Store, records: Sequence[TrialRecord]) -> tuple[tuple[str, Gauged], ...]:
    """Limits as measured, each with the profile of its start; of a start without a sealed trial it is not known."""
    profiles = {record.planned_start: record.settings.node.profile for record in records}
    events = (entry.event for entry in store.journal())
    return tuple((profiles.get(event.start, ""), event.gauged) for event in events if isinstance(event, NodesGauged))


def _timelines(
    store: Store, records: Sequence[TrialRecord], used: Mapping[Attempt, float], samples: Mapping[Attempt, pl.DataFrame]
) -> tuple[tuple[Timeline, ...], tuple[Attempt, ...]]:
    """Time series of the picked trials, with a strip per node where `samples` has its readings; and the attempts that
    are too short for one."""
    journal = store.journal()
    drawn: list[Timeline] = []
    short: list[Attempt] = []
    for record in time_courses.picked(records, used, most=MOST_TIMELINES):
        key = record.key
        course = time_courses.timeline(
            record,
            store.intervals(record),
            journal=_within(journal, record),
            value=used.get(key),
            middle=key in samples,
            samples=samples.get(key),
        )
        if course is None:
            short.append(key)
        else:
            drawn.append(course)
    return tuple(drawn), tuple(short)


def _within(journal: Sequence[Entry], record: TrialRecord) -> Sequence[Entry]:
    """The journal in the time of one trial."""
    if record.settings.node.dilation == 1:
        return journal
    return [entry if entry.t_s is None else replace(entry, t_s=modelled_s(record, entry.t_s)) for entry in journal]


def _curves(store: Store, records: Sequence[TrialRecord], used: Mapping[Attempt, float]) -> tuple[Curve, ...]:
    """Response and service time of each treatment, from the merged histograms of its used trials."""
    groups: dict[CellKey, list[TrialRecord]] = {}
    for record in records:
        if record.key in used and not record.control:
            groups.setdefault(record.cell, []).append(record)
    curves = []
    for treatment, group in groups.items():
        merged = store.histograms(group, time_courses.measured(group[0]))
        for measure in ("response", "service"):
            histogram = merged.filter(merged["measure"] == measure)
            curves.append(time_courses.curve(dict(treatment), measure, histogram, trials=len(group)))
    return tuple(curve for curve in curves if curve is not None)
