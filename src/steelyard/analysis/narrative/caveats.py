"""Caveats of the answer: from the study and its load, then from the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steelyard.analysis import dilated, statistics
from steelyard.analysis.frame import NO_VALUE_REASON, TOO_FEW_REASON
from steelyard.analysis.inference.steadiness import STEADY_FACTOR
from steelyard.analysis.narrative import carried, changed_size, machines, weaker_checks
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import server_warm_up, stopping, trend
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.server_warm_up import WarmedStart
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import NODES, label
from steelyard.analysis.wording import MOST_NAMED
from steelyard.format import count, listed, number
from steelyard.judging import load_response
from steelyard.judging.derived import not_run
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model import responses
from steelyard.model.link import NODAL
from steelyard.model.node_limits import NodeLimits
from steelyard.model.plan import Plan
from steelyard.model.response import Direction
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord

OF_SIMULATED: Final = "The cluster is simulated: this says what the laboratory finds, nothing about any database."
OF_PLANTED: Final = "Its times are planted: they do not follow the limits of nodes."
OF_EMULATED: Final = (
    "The processors of virtual machines were emulated (QEMU without KVM): times are those of the emulation, which "
    "slows some work far more than other, and of no hardware."
)
ENOUGH_STARTS: Final = 2


def caveats(
    study: Study, results: Results, records: Sequence[TrialRecord] = (), *, simulated: bool = False,
    emulated: bool = False, of_system: Sequence[str] = (), unsized: int = 0, plan: Plan | None = None,
) -> list[str]:  # fmt: skip
    """Caveats, most important first: checks that were not made as usual come before all else.

    `records`: every trial of the study; `simulated`: whether every cluster was; `emulated`: whether processors of
    nodes were; `of_system`: what the systems say of themselves; `unsized`: attempts that are left out where the number
    of nodes is read as a size; `plan`: names trials that wait for a level that others could not give.
    """
    told_time = load_response.told_time(study, [summary.treatment for summary in results.main(Summary)])
    sentences = [*weaker_checks.weakened(study), *weaker_checks.not_made(records)]
    sentences += [f"{told_time}."] if told_time else []
    sentences += _cold(study, results, simulated)
    sentences += trend.first_rank(results.of(Trend)) or slower_first_trials(
        results.of(Point), results.response, study.analysis.warm_up_trials
    )
    stretched = dilated.sentence(dilated.dilations_of_study(study))
    sentences += [stretched] if stretched else []
    if simulated:
        sentences.append(OF_SIMULATED)
        limited = study.node != NodeLimits() or any(name.startswith("node.") for name in study.factors)
        sentences += [OF_PLANTED] if limited else []
    sentences += [OF_EMULATED] if emulated else []
    sentences += [*of_system, *_old_reads(records), *carried.unfinished(records)]
    sentences += [*machines.limits(records), *_stand_ins(study)]
    sentences += server_warm_up.cold_starts(results.of(WarmedStart))
    shared = [thing for thing in ("cpu", "memory", "disk", "clock", "kernel") if thing in results.shares]
    if shared:
        named = listed(["processor" if thing == "cpu" else thing for thing in shared])
        scaling = ": adding a node adds no hardware, so this says nothing about scaling out on separate machines"
        if results.own_limits:
            scaling = ": each node adds at most the processor time of its own limit, and the machine's total is shared"
        sentences.append(
            f"The nodes share one {named}{scaling if 'cpu' in shared and results.size_factor in NODES else ''}."
        )
    sentences += changed_size.limits(study, results, records, unsized=unsized, simulated=simulated)
    published = study.design.order == "published"
    sentences += stopping.caveats(results.stopping)
    faults = sum(summary.system_faults for summary in results.main(Summary))
    if faults:
        sentences.append(
            f"The system under test failed in {count(faults, 'trial')}; they have no place in means or medians."
        )
    sentences += _gone(results)
    never = list(not_run(study, plan, records).values()) if plan else []
    sentences += [f"{count(never.count(why), 'planned trial')} not run: {why}." for why in dict.fromkeys(never)]
    if results.main(Summary) and any(0 < summary.starts < 2 for summary in results.main(Summary)):
        what = ", ".join(results.hard) or "the cluster"
        sentences.append(
            "Some treatments rest on one start: trials within it are repeated measures of it, so there is no error "
            f"term for {what}."
        )
    elif results.hard and any(summary.starts == 2 for summary in results.main(Summary)):
        sentences.append(
            "With two starts per level the intervals are wide; more starts narrow them, more trials hardly do."
            if results.of(MainEffect)
            else f"Two starts of a level give no interval: it needs {FEWEST_STARTS}, however many trials there are."
        )
    if results.of(Exclusion):
        sentences.append(_left_out(results.of(Exclusion), results.trials))
    if published:
        sentences.append(
            "All trials of a treatment came one after another, as published: drift would look like an effect."
        )
    if not study.load.is_open and responses.of(results.response).from_due:
        sentences.append(
            "The load is a closed loop: a slow answer delays the next request, so response times leave out the waiting "
            "that independent users would see."
        )
    for statistic in sorted(statistics.every(), key=lambda one: one.sentence_order):
        if statistic.sentences is not None:
            sentences += statistic.sentences(results.of(statistic.row), results.response)
    return [*sentences, *weaker_checks.no_ceiling(records)]


def _gone(results: Results) -> list[str]:
    """Treatments without a value: those without a valid trial, and those whose valid trials have none."""
    gone: dict[str, list[str]] = {}
    for summary in results.main(Summary):
        is_valid = {why.reason for why in summary.exclusions} & {TOO_FEW_REASON, NO_VALUE_REASON}
        what = f"No trial with a value ({results.response_label})" if is_valid else "No valid trial"
        if not summary.n:
            gone.setdefault(what, []).append(label(summary.treatment))
    return [f"{what} of: {'; '.join(names)}." for what, names in gone.items()]


def _cold(study: Study, results: Results, simulated: bool) -> list[str]:
    """A sentence that the servers were not warmed up, and its consequence; empty if they were or need not be."""
    if not _may_be_cold(study, simulated):
        return []
    published = ", as published" if study.design.order == "published" else ""
    colder = (
        ": the nodes of a larger cluster serve fewer operations each, so that they were colder"
        if results.size_factor in NODES
        else ": they may have become faster from trial to trial, so that a level depends on how many a start has"
    )
    return [f"The servers were not warmed up before the trials{published}{colder}."]


def _may_be_cold(study: Study, simulated: bool) -> bool:
    """Whether the servers may have got faster during the trials: they were not warmed up, and may compile code.

    A simulated cluster is cold where that is planted.
    """
    planted = study.system.settings.get("warm_up") or "system.warm_up" in study.factors
    return bool(planted) and study.server_warm_up.mode != "on" if simulated else study.server_warm_up.mode == "off"


def _left_out(exclusions: Sequence[Exclusion], trials: int) -> str:
    total = sum(one.trials for one in exclusions)
    why = "; ".join(f"{one.trials} {one.reason}" for one in exclusions)
    return f"{total} of {count(trials, 'attempt')} {'was' if total == 1 else 'were'} left out: {why}."


def _old_reads(records: Sequence[TrialRecord]) -> list[str]:
    """Sentence on reads from replicas, which may be old."""
    stated = [(record.settings, load) for record in records if (load := record.settings.stated_load)]
    elsewhere = [(settings, load.read_from) for settings, load in stated if load.read_from != "primary"]
    if not (asked := sorted({read_from for settings, read_from in elsewhere if settings.site.nodes > 1})):
        return []
    return [
        f"Reads go to replicas, too (client.read_from = {listed(asked, 'or')}): a replica may answer with a row as it "
        "was before an acknowledged write. Throughput with more nodes is partly that of weaker reads."
    ]


def _stand_ins(study: Study) -> list[str]:
    """Which profiles and links were made on other hardware, and where their limits are listed."""
    profiles = _named(study, ("node.profile",), study.node.profile, {"", "unlimited"})
    links = _named(study, ("link", "link.name"), study.link.name, {NODAL})
    parts = [f"nodes were limited like {listed(profiles)}"] if profiles else []
    parts += [f"links were made like {listed(links)}"] if links else []
    if not parts:
        return []
    return [
        f"No such hardware was measured: {' and '.join(parts)}, on the machine of the facts; what that leaves "
        "out is listed in docs/reference/hardware.md, or in the study's own files."
    ]


def _named(study: Study, fields: tuple[str, ...], base: str, plain: set[str]) -> list[str]:
    """The names that trials of a study have, but the plain ones."""
    return [str(name) for name in study.values_of(fields, base) if str(name) not in plain]


def slower_first_trials(points: Sequence[Point], response: str, left_out: int = 0) -> list[str]:
    """A sentence if every start of a treatment was faster in its second used trial than in its first, by
    `steadiness.STEADY_FACTOR` or more each time; empty if none was. `left_out`: first trials that the analysis drops
    already.

    A test for a trend (`statistics.trend`) takes more trials than two a start: this describes, and says no more.
    """
    direction = responses.of(response).direction
    if direction is Direction.NEITHER:
        return []
    factors = {name: _factors(series, direction) for name, series in _series(points).items()}
    plain = {
        name: values
        for name, values in factors.items()
        if len(values) >= ENOUGH_STARTS and min(values) >= STEADY_FACTOR
    }
    if not plain:
        return []
    least, most = min(map(min, plain.values())), max(map(max, plain.values()))
    how_much = number(least, digits=2) if least == most else f"{number(least, digits=2)} to {number(most, digits=2)}"
    names = [name for name in plain if name][:MOST_NAMED]
    whose = f" of {listed(names)}" if names else ""
    more = f" and {len(plain) - MOST_NAMED} more" if len(plain) > MOST_NAMED else ""
    return [
        f"In every start{whose}{more} the second trial (where there was one) was faster than the first, by a factor of "
        f"{how_much} ({responses.label_of(response)}): the means depend on how many trials a start has. Warm the "
        f"servers up, or leave out {'more' if left_out else 'first'} trials (analysis.warm_up_trials)."
    ]


def _series(points: Sequence[Point]) -> Mapping[str, list[list[float]]]:
    """Treatment in words to the values of its used trials in each start, in order of time."""
    series: dict[str, dict[str, list[float]]] = {}
    for point in sorted(points, key=lambda each: each.begun_s):
        if point.used and not point.control:
            name = label(point.treatment) if point.treatment else ""
            series.setdefault(name, {}).setdefault(point.start, []).append(point.value)
    return {name: list(starts.values()) for name, starts in series.items()}


def _factors(starts: Sequence[Sequence[float]], direction: Direction) -> list[float]:
    """By how much each start was faster in its second trial than in its first; below 1 where it was slower. Starts with
    fewer than two trials, or with a value that is not positive, say nothing."""
    pairs = [values[:2] for values in starts if len(values) > 1 and min(values[:2]) > 0]
    up = direction is Direction.MORE_IS_FASTER
    return [second / first if up else first / second for first, second in pairs]
