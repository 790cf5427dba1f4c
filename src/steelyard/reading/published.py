"""Comparison with published results: each published number, ours with its interval, and whether they agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import censored, estimates
from steelyard.analysis.inference.effect_sizes import TwoSamples, cohens_d
from steelyard.analysis.statistics.activity_response import before_and, effect_of
from steelyard.analysis.statistics.time_to_event import until_scaled_out
from steelyard.analysis.treatments import label
from steelyard.format import count
from steelyard.judging import t_interval
from steelyard.judging.trial_responses import response_of
from steelyard.model import responses
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.facts import isolation, of_machines, role_of
from steelyard.model.link import NODAL
from steelyard.model.named_level import Level
from steelyard.model.policy import NONE
from steelyard.model.responses import unit_of
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.reading.comparison import levels
from steelyard.reading.opened import Opened
from steelyard.reading.report_input import ReportInput
from steelyard.reference import tables as shipped
from steelyard.reference.comparison import PublishedPair
from steelyard.reference.mapping import PLACED, Own, clashes, lay_table, unpublished
from steelyard.reference.tables import TIMES, Table, in_window

PROPORTIONS = ("read_proportion", "write_proportion", "update_proportion", "insert_proportion", "scan_proportion",
               "read_modify_write_proportion")  # fmt: skip
MIB_PER_GIB = 1024
KINDS_OF_LINKS = ("802.11", "ethernet")
SCALED_OUT_AT, JOINING = TIMES
Values = dict[tuple[str, str], dict[str, list[float]]]
"""(treatment, response) to the values of its trials by start."""


@dataclass(frozen=True)
class PublishedComparison:
    """Own results next to the tables of one publication."""

    name: str
    """Name of the publication, or of one of its tables."""
    rows: tuple[PublishedPair, ...]
    """One per published number, with ours next to it where there is one."""
    own: tuple[Own, ...]
    """Own treatments with their facets and numbers."""
    remarks: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether every number of ours with an interval agrees; False if none has one."""
        judged = [
            row for row in self.rows if row.verdict != "no number" and row.ours is not None and row.ours.low is not None
        ]
        return bool(judged) and all(row.verdict == "agrees" for row in judged)


def compare_with_published(
    ours: Opened, name: str, *, a: Sequence[str] = (), b: Sequence[str] = ()
) -> PublishedComparison:
    """Compare own results with a publication's tables, or one of its tables.

    `a`: levels `nodes=3` that choose own treatments; `b`: published cells `platform=virtual-machine`. Raises StudyError
    for an unknown name, or where own treatments cannot be distinguished.
    """
    tables = tables_named(name)
    fixed = levels(a, ours.frame.factors, "--a")
    chosen = _chosen(tables, b)
    placed = _placed(tables, chosen)
    asked_for = set(chosen) & set(placed)
    laid_beside, own = lay(tables, ours, fixed, placed, own_place=not asked_for)
    kept = {column: level for column, level in chosen.items() if column not in placed}
    rows = [row for row in laid_beside if all(row.cell.get(column) in (None, kept[column]) for column in kept)]
    if not rows and placed:
        needs = "; ".join(f"{table.name}: {table.form.needs}" for table in tables if table.form and table.form.needs)
        hint = f"it needs {needs}" if needs else f"`steelyard reference show {name}` lists its cells"
        raise StudyError(f"no results here can be compared with {name}", hint, read=name)
    return PublishedComparison(name, tuple(rows), tuple(own), tuple(_remarks(tables, rows, own, placed)))


def with_published(ours: Opened, page_input: ReportInput) -> ReportInput:
    """The report's input with published numbers next to its own, where the study has the name of a shipped publication;
    unchanged where it has not, or where nothing of the study can be compared with them."""
    name = page_input.study.study.name
    if name not in {table.source.name for table in shipped.tables().values()}:
        return page_input
    try:
        comparison = compare_with_published(ours, name)
    except StudyError:
        return page_input
    return replace(page_input, published=comparison.rows, published_name=name)


def lay(
    tables: Sequence[Table],
    ours: Opened,
    fixed: Mapping[str, Level],
    placed: Mapping[str, str],
    *,
    own_place: bool = True,
) -> tuple[list[PublishedPair], list[Own]]:
    """Every number of the tables with ours next to it. `placed`: column that none of our factors decides, to the level
    that ours are compared with; `own_place`: treatments that say their platform, memory and link go there instead.
    Raises StudyError where two treatments fit one number, or no valid trial is left."""
    forms = [table.form for table in tables if table.form]
    wanted = {form.response for form in forms} | {one.response for form in forms for one in form.numbers}
    frame = ours.frame
    own, values = _own(ours, frame, fixed, wanted)
    beside = {f"{PLACED}{column}": level for column, level in placed.items()}
    profiles = {name: place for form in forms for name, place in form.profiles.items()}
    own = [
        replace(one, facets={**one.facets, **beside, **(_place_of(one.facets, placed, profiles) if own_place else {})})
        for one in own
    ]
    if not own:
        raise StudyError("no cell has valid trials", "`steelyard status STORE` says why")
    for table in tables:
        both = clashes(table, own)
        if both is not None:
            raise StudyError(
                f"{both[0].name} and {both[1].name} would be compared with the same number of {table.name}",
                f"choose one: --a {_differing_factor(frame, *both)}=LEVEL",
                key="--a",
            )
    confidence = ours.study.analysis.confidence

    def contrasted(own_side: Own, other_side: Own, response: str) -> Estimate | None:
        first, second = (
            [value for start in values.get((side.name, response), {}).values() for value in start]
            for side in (own_side, other_side)
        )
        return (
            cohens_d(TwoSamples(second, first, "trials, counted as independent"), confidence)
            if first and second
            else None
        )

    return [one for table in tables for one in lay_table(table, own, contrasted)], own


def _place_of(
    facets: Mapping[str, str], placed: Mapping[str, str], profiles: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Platform, memory and link of a treatment that limits its nodes' memory or says which hardware they represent, and
    the link of one that names it, as facets of the published columns; empty for any other treatment. Nodes that
    represent hardware have its memory here, whatever their limit: a study on a small scale divides memory and rows."""
    memory, profile, link = (facets.get(name) for name in ("node.memory_mb", "node.profile", "link.name"))
    place = {} if link is None else {"link": _kind_of_link(link)}
    if memory is not None or profile is not None:
        place = {"platform": profile or "virtual-machine", "link": NODAL, **place}
    if memory is not None and not profile:
        place["ram_gb"] = f"{float(memory) / MIB_PER_GIB:g}"
    place |= profiles.get(profile or "", {})
    return {f"{PLACED}{column}": level for column, level in place.items() if column in placed}


def _kind_of_link(name: str) -> str:
    """A link as publications name it, without its rate: `802.11n` is 802.11, `ethernet-100` is ethernet."""
    return next((kind for kind in KINDS_OF_LINKS if name.startswith(kind)), name)


def _differing_factor(frame: TrialFrame, own: Own, another: Own) -> str:
    """The factor in which two treatments differ."""
    named = {label(treatment): treatment for treatment in frame.treatments}
    first, second = named[own.name], named[another.name]
    return next(name for name in frame.names if first.get(name) != second.get(name))


def _own(ours: Opened, frame: TrialFrame, fixed: Mapping[str, Level], wanted: set[str]) -> tuple[list[Own], Values]:
    by_id = {one.key: one for one in ours.records}
    treatments: list[Own] = []
    values: Values = {}
    for treatment in frame.treatments:
        if any(treatment.get(name) != level for name, level in fixed.items()):
            continue
        used = frame.values("operations", treatment)
        records = [by_id[key] for key in zip(used["trial_id"], used["attempt"], strict=True)]
        if not records:
            continue
        name = label(treatment)
        for record in records:
            for response, value in values_of(record, wanted):
                values.setdefault((name, response), {}).setdefault(record.start, []).append(value)
        of_changes, unlike = _of_changes(ours, name, records, wanted, values)
        numbers = of_changes | _numbers(name, values, ours.study.analysis.confidence)
        trials = {
            response: tuple(value for start in by_start.values() for value in start)
            for (treatment_name, response), by_start in values.items()
            if treatment_name == name
        }
        treatments.append(Own(name, facets(ours, records), len(records), numbers, _shared(records) | unlike, trials))
    return treatments, values


def _of_changes(
    ours: Opened, name: str, records: Sequence[TrialRecord], wanted: Set[str], values: Values
) -> tuple[dict[tuple[str, str], Estimate], dict[str, tuple[str, ...]]]:
    """Numbers of trials under a policy, with reasons why they are not comparable: when they scaled out, how long nodes
    joined, and Cohen's d of a window against before. Adds responses in windows around the first scale-out to `values`.
    """
    if not any(record.settings.policy.changes for record in records):
        return {}, {}
    confidence, starts = ours.study.analysis.confidence, {record.key: record.start for record in records}
    done = {record.key for record in records if record.activities and record.activities[0].outcome == "done"}
    first = [
        one
        for one in ours.within.of_analysis.around
        if one.trial in starts and (one.window.activity, one.window.kind) == (1, "scale-out")
    ]
    numbers: dict[tuple[str, str], Estimate] = {}
    before = {one.trial: one for one in first if one.window.name == "before"}
    for window in dict.fromkeys(one.window.name for one in first):
        of_window = [one for one in first if one.window.name == window]
        for response in sorted(wanted):
            for around in of_window:
                if response in around.values:
                    of_response = values.setdefault((name, in_window(response, window)), {})
                    of_response.setdefault(starts[around.trial], []).append(around.values[response])
            both = [(starts[trial], *pair) for trial, pair in before_and(of_window, before, response)]
            if effect := effect_of(both, confidence, paired=True, falls=True):
                numbers[in_window(response, window), "cohens_d"] = effect
        lengths = [(starts[one.trial], one.window.seconds) for one in of_window if one.trial in done]
        if window == "during" and lengths:
            numbers[JOINING, "mean"] = estimates.by_start(lengths, "s", confidence)
    watched = [trial for record in records if (trial := until_scaled_out(record)) is not None]
    if not watched:
        return numbers, {}
    of_s = censored.watched_by_half(watched)
    numbers[SCALED_OUT_AT, "mean"] = censored.restricted_mean(watched, of_s, confidence)
    lacking = sum(trial.after_s is None for trial in watched)
    why = f"{lacking} of {count(len(watched), 'trial')} did not scale out: ours is the restricted mean of {of_s:.0f} s"
    return numbers, {SCALED_OUT_AT: (why,)} if lacking else {}


def values_of(record: TrialRecord, wanted: Set[str]) -> Iterator[tuple[str, float]]:
    """The wanted responses that a trial has."""
    for response in sorted(wanted & set(responses.every())):
        value = response_of(record, response)
        if value is not None:
            yield response, float(value)


def _numbers(name: str, values: Values, confidence: float) -> dict[tuple[str, str], Estimate]:
    """Mean over start means where there are two starts, otherwise over trials; median and standard deviation over
    trials, without intervals where they are repeated measures of several starts."""
    numbers: dict[tuple[str, str], Estimate] = {}
    for (treatment, response), by_start in values.items():
        if treatment != name:
            continue
        of_starts = [(start, value) for start, trials in by_start.items() for value in trials]
        every, unit = [value for _, value in of_starts], unit_of(response.partition(" ")[0])
        numbers[response, "mean"] = estimates.by_start(of_starts, unit, confidence)
        numbers[response, "50%"] = estimates.if_independent(estimates.median(every, unit, confidence), len(by_start))
        if len(every) > 1:
            numbers[response, "sd"] = Estimate(
                value=t_interval.deviation(every), confidence=confidence, n=len(every), unit=unit,
                method="standard deviation over trials, without an interval",
            )  # fmt: skip
    return numbers


def _shared(records: Sequence[TrialRecord]) -> dict[str, tuple[str, ...]]:
    shares = {share for one in records for share in one.shares}
    remarks: dict[str, tuple[str, ...]] = {}
    for name, response in responses.measured_by_samples().items():
        measure = response.measure
        if measure is not None and measure.shared and measure.shared in shares:
            thing = "processor" if measure.shared == "cpu" else measure.shared
            remarks[name] = (
                f"the nodes share one {thing}: ours is of the whole machine, load and laboratory included",
            )
        elif measure is not None and measure.per == "cores" and "cpu" in shares:
            remarks[name] = ("the nodes share one processor, which was theirs alone in the publication",)
    return remarks


def facets(ours: Opened, records: Sequence[TrialRecord]) -> dict[str, str]:
    """Settings as text by dotted name, and facets derived from them, as far as all trials agree."""
    each = [{**_flat(one.settings), **_derived(one.settings)} for one in records]
    shared = {name: text for name, text in each[0].items() if all(other.get(name) == text for other in each)}
    facts = ours.store.facts(records[0])
    contained = any(isolation(one) == "container" for one in of_machines(facts).values())
    platform = platform_of(facts)
    return shared | {"container": "yes" if contained else "no"} | ({"platform": platform} if platform else {})


def _flat(settings: TrialSettings) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in settings.leaves():
        if value is not None:
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            texts[name] = f"{value:.12g}" if plain else value if isinstance(value, str) else json.dumps(value)
    return texts


def _derived(settings: TrialSettings) -> dict[str, str]:
    name, system = settings.workload.name, settings.system
    read, write = settings.at("load.read_consistency"), settings.at("load.write_consistency")
    derived = {
        "workload.letter": name.rsplit("-", 1)[-1].upper(),
        "load.consistency": str(read) if read == write else f"{read} for reads and {write} for writes",
        "system.version": f"{system.name} {system.settings.get('version', '')}".strip(),
        **_memory_gb(settings),
        "policy.changes": "yes" if settings.policy.changes else "no" if settings.policy.name == NONE else "",
        "policy.most": str(settings.policy.most(settings.site.nodes)),
    }
    shares = {key: float(settings.workload.settings.get(key) or 0.0) for key in PROPORTIONS}
    if sum(shares.values()) > 0:
        derived["workload.read_fraction"] = f"{shares['read_proportion'] / sum(shares.values()):.12g}"
    return derived


def _memory_gb(settings: TrialSettings) -> dict[str, str]:
    memory = settings.at("node.memory_mb")
    return {} if memory is None else {"node.memory_gb": f"{float(str(memory)) / MIB_PER_GIB:g}"}


def platform_of(facts: Mapping[str, Mapping[str, str]]) -> str | None:
    """Platform of the database nodes, by their facts: a board's name, or site, processor and virtualisation."""
    database = next((one for name, one in of_machines(facts).items() if role_of(name, facts) == "database"), None)
    if database is None:
        return None
    model = database.get("board") or database.get("cpu_model", "")
    if "raspberry pi 2" in model.casefold():
        return "raspberry-pi-2"
    parts = [database.get("site", ""), model]
    return " on ".join(part for part in parts if part) or None


def tables_named(name: str) -> tuple[Table, ...]:
    """The tables of the named study, or the one named table."""
    try:
        tables = shipped.named(name)
    except shipped.UnknownReference as error:
        raise shipped.UnknownReference(f"{name!r} is not a store, a shipped table or a study", error.hint) from error
    if len({table.source.name for table in tables}) > 1:
        names = ", ".join(dict.fromkeys(table.source.name for table in tables))
        raise StudyError(f"{name}: one publication at a time", f"one of {names}", read=name)
    return tables


def _chosen(tables: Sequence[Table], texts: Sequence[str]) -> dict[str, str]:
    """The published rows or cells that `--b replication_factor=3` chooses. Raises StudyError with the known names."""
    known: dict[str, list[str]] = {}
    forms = [table.form for table in tables if table.form is not None and table.form.placed]
    sources = [shipped.tables()[form.cells_of] for form in forms] or tables
    for row in (row for table in sources for row in table.rows):
        for name, text in row.key.items():
            if (not forms or name in forms[0].placed) and text not in known.setdefault(name, []):
                known[name].append(text)
    chosen = {}
    for text in (part for one in texts for part in one.split(",")):
        name, _, wanted = (part.strip() for part in text.partition("="))
        if wanted not in known.get(name, ()):
            there = "; ".join(f"{one}: {', '.join(values)}" for one, values in known.items())
            raise StudyError(f"--b {text}: nothing like it was published", f"there are: {there}", key="--b", read=text)
        chosen[name] = wanted
    return chosen


def _placed(tables: Sequence[Table], chosen: Mapping[str, str]) -> dict[str, str]:
    """Published columns not set by any of our factors, with the level to compare with: chosen,
    implied by another choice, or the form's default."""
    forms = [table.form for table in tables if table.form is not None and table.form.placed]
    placed: dict[str, str] = {}
    for form in forms:
        placed |= form.placed
        for level in chosen.values():
            placed |= form.follows.get(level, {})
        placed |= {name: level for name, level in chosen.items() if name in form.placed}
    return placed


def _remarks(
    tables: Sequence[Table], comparisons: Sequence[PublishedPair], own: Sequence[Own], placed: Mapping[str, str]
) -> Iterator[str]:
    """Remarks on all numbers, and on tables and cells that could not be compared."""
    if placed:
        options = ", ".join(f"{name}=" for name in placed)
        places = dict.fromkeys(" ".join(one.facets[f"{PLACED}{name}"] for name in placed) for one in own)
        yield f"ours are compared with {', '.join(places)}; --b {options} choose others"
        without = dict.fromkeys(cell for table in tables for cell in unpublished(table, own))
        if without:
            yield f"nothing was published of {'; '.join(without)}"
        if not any("platform" in one.facets for one in own):
            yield "our platform is not known: no node has facts"
    there = {one.table for one in comparisons}
    for table in tables:
        yield from table.form.remarks if table.form is not None and table.form.computed else table.caveats
    for table in tables:
        if table.form is not None and table.form.needs and table.name not in there:
            yield f"no {table.name} is recomputed: it needs {table.form.needs}"
