"""Feasibility checks on loads: concurrency too low for the rate or the load nodes, too few operations for a percentile,
longer than the time limit, unusable trace.

Little's law: the mean number in flight is the rate times the mean time of one operation, for any distribution (Little,
"A proof for the queuing formula L = lambda W", Operations Research 9, 1961). With at most n in flight, a cluster
therefore carries at most n / service time operations per second; if a load offers more, its queue keeps growing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.format import count
from steelyard.judging.dilation import effective_load
from steelyard.judging.load_response import operations_of
from steelyard.judging.settings_hash import canonical
from steelyard.judging.trial_responses import pools_windows
from steelyard.model import responses
from steelyard.model.errors import StudyError
from steelyard.model.load import Load, Offered
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.plan.abilities import Abilities
from steelyard.plan.phase_times import closed_per_s, limited_times, treatment_hash
from steelyard.plugins.find import Plugins
from steelyard.store.plain_file import sha256_of
from steelyard.study.named_responses import named_responses

MS_PER_S = 1000.0
LONGEST_READ = 40


class ServiceTime(Value):
    """A mean service time and its source."""

    ms: float
    source: str


def refusals(study: Study, plan: Plan, history: Sequence[TrialRecord], abilities: Abilities) -> Iterator[StudyError]:
    """Errors for loads that cannot possibly work."""
    for trial in _distinct(plan.trials):
        load = effective_load(trial.settings)
        yield from _too_long(load, study.limits.trial_timeout_s)
        yield from _too_few_for_the_load_nodes(load, trial.settings)
        yield from _no_trace(load, history, abilities.plugins)
        if not history and "-scale-" not in study.study.name:  # a begun study continues; a scaled one is a rehearsal
            yield from _without_percentiles(load, study)
    yield from _unsearched(study, plan)


def _too_few_for_the_load_nodes(load: Load, settings: TrialSettings) -> Iterator[StudyError]:
    """In-flight slots are divided among the load nodes, and each needs at least one. Fewer would be rounded up, and the
    trial would not run its treatment."""
    load_nodes = settings.load_nodes
    field = "load_site.nodes" if settings.load_site.name else "site.load_nodes"
    named = "threads of load.phases" if load.phases else "load.threads"
    places = {named: min(load.threads_of(offered) for offered in load.offered)}
    if load.wants_capacity:
        places["load.capacity_threads"] = load.capacity_threads
    for key, threads in places.items():
        if threads < load_nodes:
            yield StudyError(
                f"{key} is {threads}, but each of the {load_nodes} load nodes needs at least one operation in flight",
                f"set {key} to {load_nodes} or more, or {field} to {threads} or fewer",
                key=key.removeprefix("threads of "),
                read=threads,
            )


def _without_percentiles(load: Load, study: Study) -> Iterator[StudyError]:
    """An error for each percentile that no trial has enough operations for."""
    most = operations_of({name: getattr(load, name) for name in Load.model_fields})
    key = "operations" if load.operations is not None else "phases" if load.phases else "duration_s"
    for name, least in study.analysis.operations_needed.items():
        if most is not None and most < least:
            yield StudyError(
                f"{name} needs {least:,} operations per trial, but load.{key} gives {most:,.0f}: no trial would have a "
                "value",
                "use " + ", or ".join(["longer trials", *responses.lower_percentiles(name, most)[:1]]),
                key=f"load.{key}",
            )


def doubtful_percentiles(study: Study, plan: Plan, cores: int, abilities: Abilities) -> Iterator[str]:
    """Warnings about timed closed loops that are expected to finish too few operations for a percentile."""
    for trial in _distinct(plan.trials):
        load = effective_load(trial.settings)
        if load.schedule != "closed" or load.phases or load.operations is not None or load.duration_s is None:
            continue
        about = load.duration_s * closed_per_s(load, limited_times(trial.settings, abilities, cores, warm=True))
        for name, least in study.analysis.operations_needed.items():
            if about < least:
                yield (
                    f"{name} needs {least:,} operations per trial, but only about {about:,.0f} are expected in "
                    f"load.duration_s = {load.duration_s:g}: such trials have no value"
                )


def notes(plan: Plan, history: Sequence[TrialRecord], cores: int, abilities: Abilities) -> tuple[str, ...]:
    """Warnings by Little's law about loads that have not run yet. They are not refusals: offering more than a cluster
    carries is a legitimate question, and a study that has begun must be able to continue."""
    return tuple(dict.fromkeys(_overtaxed(_missing(plan, history), history, cores, abilities)))


def _distinct(trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """One trial of each treatment."""
    return list({treatment_hash(trial.id): trial for trial in reversed(trials)}.values())[::-1]


def _missing(plan: Plan, history: Sequence[TrialRecord]) -> list[PlannedTrial]:
    done = {record.id for record in history if record.verdict.final}
    return [trial for trial in plan.trials if trial.id not in done]


def _overtaxed(
    trials: Sequence[PlannedTrial], history: Sequence[TrialRecord], cores: int, abilities: Abilities
) -> Iterator[str]:
    """A sentence about each treatment that offers more than its concurrency can carry."""
    for trial in _distinct(trials):
        load = effective_load(trial.settings)
        for offered in load.offered:
            rate_per_s, threads = offered.peak_per_s(), load.threads_of(offered)
            if rate_per_s is None:
                continue
            known = _service_time(trial, history) or _by_rule(trial, abilities, cores)
            carried_per_s = threads * MS_PER_S / known.ms
            if carried_per_s < rate_per_s:
                yield _said(offered, threads, rate_per_s, known, carried_per_s)


def _said(offered: Offered, threads: int, rate_per_s: float, known: ServiceTime, carried_per_s: float) -> str:
    where = f"phase {name}: " if (name := getattr(offered, "name", "")) else ""
    return (
        f"{where}{threads:,} in flight cannot carry {rate_per_s:,.0f} op/s at {known.ms:.3g} ms: "
        f"at most {carried_per_s:,.0f} op/s (service time: {known.source})"
    )


def _by_rule(trial: PlannedTrial, abilities: Abilities, cores: int) -> ServiceTime:
    ms = abilities.cluster_times(trial.settings, cores).service_ms
    return ServiceTime(ms=ms, source="rule of thumb for a lightly loaded cluster")


def _service_time(trial: PlannedTrial, history: Sequence[TrialRecord]) -> ServiceTime | None:
    """The treatment's own service time if this store has it, otherwise the shortest one for the same cluster and
    workload under another load."""
    same, others = [], []
    cluster = _cluster(trial.settings)
    for record in history:
        ms = record.responses.service_ms_mean
        # Attempts that the laboratory spoiled are excluded; overloads of the system count.
        if not ms or not record.verdict.final:
            continue
        if treatment_hash(record.id) == treatment_hash(trial.id):
            same.append(ms)
        elif _cluster(record.settings) == cluster:
            others.append(ms)
    if same:
        source = f"measured in this store for the same treatment, {count(len(same), 'trial')}"
        return ServiceTime(ms=sum(same) / len(same), source=source)
    if others:
        return ServiceTime(ms=min(others), source="measured in this store under another load")
    return None


def _cluster(settings: TrialSettings) -> str:
    return canonical(settings.part("site", "system", "workload", "node", "load_site"))


def _too_long(load: Load, limit_s: float) -> Iterator[StudyError]:
    measured_s = load.measured_s or 0.0
    if load.schedule == "search" and load.warm_up_s + measured_s > limit_s:
        yield StudyError(
            f"the {load.most_windows} windows of a search, with the warm-up, take about "
            f"{load.warm_up_s + measured_s:g} s: longer than limits.trial_timeout_s = {limit_s:g}",
            "lower load.most_windows or load.window_s, or raise limits.trial_timeout_s",
            key="load.most_windows",
            read=load.most_windows,
        )
        return
    parts = [("warm_up_s", load.warm_up_s), ("phases" if load.phases else "duration_s", measured_s)]
    yield from _beyond(parts, limit_s)
    if load.wants_capacity:
        yield from _beyond([("warm_up_s", load.warm_up_s), ("capacity_s", load.capacity_s)], limit_s)


def _unsearched(study: Study, plan: Plan) -> Iterator[StudyError]:
    """Errors for named responses that some treatments cannot have: capacity without a search, or of a search what would
    be over windows of all its rates."""
    schedules = {trial.settings.load.schedule for trial in plan.trials}
    for key, name in named_responses(study).items():
        if schedules == {"search"} and pools_windows(responses.of(name)):
            yield StudyError(
                f"the {responses.label_of(name)} of a search would be over windows of all its rates",
                f"use {CAPACITY} instead: the report has response times window by window",
                key=key,
                read=name,
            )
        if name == CAPACITY and schedules != {"search"}:
            others = " or ".join(sorted(schedules - {"search"}))
            yield StudyError(
                f"trials with schedule {others} have no capacity: only a search finds one",
                'use load.schedule = "search" with load.objective, or name another response',
                key=key,
                read=name,
            )


def _beyond(parts: Sequence[tuple[str, float]], limit_s: float) -> Iterator[StudyError]:
    whole_s = sum(seconds for _, seconds in parts)
    if whole_s <= limit_s:
        return
    names = " + ".join(f"load.{name}" for name, seconds in parts if seconds)
    yield StudyError(
        f"{names} = {whole_s:g} s: longer than limits.trial_timeout_s = {limit_s:g}, so no trial could finish",
        "shorten it, or raise limits.trial_timeout_s (leave room for a backlog at the end)",
        key=f"load.{max(parts, key=lambda part: part[1])[0]}",
        read=whole_s,
    )


def _no_trace(load: Load, history: Sequence[TrialRecord], plugins: Plugins) -> Iterator[StudyError]:
    for number, offered in enumerate(load.offered):
        key = f"load.phases.{number}.trace" if load.phases else "load.trace"
        if offered.trace is not None:
            try:
                path = plugins.file(offered.trace, "trace", key)
            except StudyError as error:
                yield error
            else:
                yield from _wrong_trace(path, key)
                yield from _changed_trace(offered.trace, path, key, history)


def _changed_trace(name: str, path: Path, key: str, history: Sequence[TrialRecord]) -> Iterator[StudyError]:
    """An error if a trace file has changed: trials refer to it by name, so trials of different traces would count as
    replicates."""
    digest = sha256_of(path)
    others = [record for record in history if record.versions.get(f"trace {name}", digest) != digest]
    if others:
        message = f"{path} has changed: {len(others)} sealed trials of this store were driven by its earlier content"
        yield StudyError(message, "put the new trace in another file, or rename the study", key=key, read=name)


def _wrong_trace(path: Path, key: str) -> Iterator[StudyError]:
    """An error for the first line that the agent would refuse."""
    hint = "write one time in seconds per line, in ascending order; lines that begin with # are skipped"
    last_s: float | None = None
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                stamp_s = float(text)
            except ValueError:
                stamp_s = math.nan
            if not math.isfinite(stamp_s) or (last_s is not None and stamp_s < last_s):
                why = f"comes after {last_s!r}" if math.isfinite(stamp_s) else "is not a number of seconds"
                yield StudyError(f"{path}:{number}: {text[:LONGEST_READ]!r} {why}", hint, key=key, read=text)
                return
            last_s = stamp_s
    if last_s is None:
        yield StudyError(f"{path} has no time stamps", hint, key=key)
