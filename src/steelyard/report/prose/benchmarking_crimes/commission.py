"""Benchmarking crimes of commission, after Gernot Heiser's list; each check states its evidence.

Every check is always shown, also if it finds nothing. Source: Heiser, "Systems Benchmarking Crimes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.validity import Validity
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import count, listed, number
from steelyard.judging.noise_floor import STUDY as NOISE_STUDY
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model import responses
from steelyard.model.facts import MACHINE, of_machines, of_systems
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.report.data.presentation import Figure
from steelyard.report.draw.svg import Picture
from steelyard.report.prose.benchmarking_crimes.crime import Crime, some
from steelyard.report.prose.benchmarking_crimes.omission import missing
from steelyard.store.measured_again import MeasuredAgain

HARDWARE: Final = ("cpu_model", "cores", "memory_mb", "architecture", "kernel", "virtualisation", "disk", "java")
"""Facts that should be the same on all nodes."""


def crimes(
    study: Study,
    results: Results,
    records: Sequence[TrialRecord],
    facts: Mapping[str, Mapping[str, str]],
    figures: Sequence[Figure],
    measured_again: Sequence[MeasuredAgain] = (),
    machines: Mapping[str, Mapping[str, str]] | None = None,
    lost_blocks: Sequence[int] = (),
) -> tuple[Crime, ...]:
    """Every check with its finding, the guilty ones first. `figures`: all that are drawn; `machines`: facts of those of
    several laboratories; `lost_blocks`: what these lost in flight."""
    checks = (
        _baseline(results),
        _single_trials(results),
        _mean_of_percentiles(results),
        _mixed_hardware(records, machines or facts),
        _truncated_axes(figures),
        _closed_loop(study, results, records),
        _units(results, figures),
        _left_out(results, measured_again, lost_blocks),
        _noise_floor(results),
        *missing(study, results, records, facts),
    )
    return tuple(sorted(checks, key=lambda crime: not crime.guilty))


def _baseline(results: Results) -> Crime:
    name = "No baseline"
    treatments = len(results.main(Summary))
    if results.of(Comparison):
        bases = sorted({f"{one.factor} {one.baseline}" for one in results.of(Comparison)})
        return Crime(name, False, f"{count(len(results.of(Comparison)), 'comparison')} against {some(bases)}.")
    return Crime(
        name,
        True,
        f"{count(treatments, 'treatment')} and 0 comparisons: nothing says whether these numbers are good.",
        "Add a level to compare with, or compare the store with a published table.",
    )


def _single_trials(results: Results) -> Crime:
    single = [label(one.treatment) for one in results.main(Summary) if one.n == 1]
    few = [one for one in results.main(Summary) if one.n > 1 and one.starts < FEWEST_STARTS]
    starts = [one.starts for one in results.main(Summary) if one.n]
    one_start = bool(results.hard) and bool(starts) and min(starts) == 1
    evidence = f"{len(single)} of {count(len(results.main(Summary)), 'cell')} rest on n = 1 trial"
    evidence += f" ({some(single)})" if single else ""
    evidence += f"; {len(few)} on fewer than {FEWEST_STARTS} starts, too few for an interval" if few else ""
    if one_start:
        alone = count(sum(one == 1 for one in starts), "cell has", "cells have")
        evidence += f"; {listed(list(results.hard))} varied over starts and {alone} 1 start"
    return Crime("A single trial", bool(single) or one_start, evidence + ".", "Raise design.trials, or design.starts.")


def _mean_of_percentiles(results: Results) -> Crime:
    name = "A mean of percentiles"
    if responses.of(results.response).percentile is not None and any(one.n > 1 for one in results.main(Summary)):
        most = max(one.n for one in results.main(Summary))
        return Crime(
            name,
            True,
            f"{capital(results.response_label)} is the main response: its means are over up to {most} trials' own "
            "percentiles, and are not the percentile of all operations.",
            "Read percentiles of all operations from the percentile curves, which come from added histograms.",
        )
    return Crime(
        name, False, f"The main response is {results.response_label}; 0 percentiles are averaged over seconds or nodes."
    )


def _mixed_hardware(records: Sequence[TrialRecord], facts: Mapping[str, Mapping[str, str]]) -> Crime:
    differing = []
    served, machines = of_systems(facts), of_machines(facts)
    nodes = {name: found for name, found in machines.items() if name in served} or {
        name: found for name, found in machines.items() if name != MACHINE
    }
    for fact in HARDWARE:
        values = sorted({str(found[fact]) for found in nodes.values() if fact in found})
        if len(values) > 1:
            differing.append(f"{fact}: {len(values)} values ({some(values)})")
    versions: dict[str, set[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            versions.setdefault(name, set()).add(version)
    differing += [f"version of {name}: {some(sorted(found))}" for name, found in versions.items() if len(found) > 1]
    evidence = "; ".join(differing) if differing else f"0 differences between {count(len(nodes), 'node')}"
    hint = "Compare only within one kind of hardware and one version, or make it a factor."
    return Crime("Mixed hardware or versions", bool(differing), evidence + ".", hint)


def _truncated_axes(figures: Sequence[Figure]) -> Crime:
    cut = []
    for figure in figures:
        lows = [low for panel in figure.panels for low in _axis_starts(panel.picture)]
        if lows:
            cut.append(f"figure “{figure.title}”: {count(len(lows), 'axis', 'axes')}, from {number(min(lows))}")
    evidence = some(cut) if cut else f"0 axes of {count(len(figures), 'figure')} begin above 0"
    hint = "These figures show spread and say so in their captions; read sizes of effects from the answer's table."
    return Crime("Truncated axes", bool(cut), evidence + ".", hint)


def _axis_starts(picture: Picture) -> list[float]:
    """Lower ends of the linear y axes that do not begin at 0."""
    return [axis.low for axis in picture.y_domains if axis.kind == "linear" and axis.low > 0]


def _closed_loop(study: Study, results: Results, records: Sequence[TrialRecord]) -> Crime:
    name = "Response times of a closed loop compared"
    closed = [record for record in records if not _is_open(study, record)]
    evidence = f"{len(closed)} of {count(len(records), 'trial')} ran in a closed loop"
    main = responses.of(results.response).from_due
    shown = main or any(responses.of(one.response).from_due for one in results.others(Summary))
    if not closed or not shown:
        return Crime(name, False, evidence + ("." if closed else ": every response time counts from when it was due."))
    which = f", and the main response is {results.response_label}" if main else ""
    return Crime(
        name,
        True,
        f"{evidence}{which}: a slow system is sent less, so that its response times flatter it.",
        'Compare response times at an offered rate: load.schedule = "constant" or "poisson".',
    )


def _is_open(study: Study, record: TrialRecord) -> bool:
    return (record.settings.stated_load or study.load).is_open


def _units(results: Results, figures: Sequence[Figure]) -> Crime:
    bare = sorted({one.response for one in (*results.main(Summary), *results.others(Summary)) if not one.unit})
    without_n = [figure.title for figure in figures if "n = " not in figure.caption]
    evidence = f"{len(bare)} responses without a unit" + (f" ({some(bare)})" if bare else "")
    evidence += f"; {len(without_n)} captions without n" + (f" ({some(without_n)})" if without_n else "")
    return Crime("No units, no n", bool(bare) or bool(without_n), evidence + ".", "Name the unit where it is made.")


def _left_out(results: Results, measured_again: Sequence[MeasuredAgain], lost_blocks: Sequence[int]) -> Crime:
    lost = sum(one.excluded for one in results.main(Summary))
    share = lost / results.trials if results.trials else 0.0
    evidence = (
        f"{lost} of {count(results.trials, 'attempt')} ({100 * share:.1f}%) left out, each listed with its reason"
    )
    if lost_blocks:
        evidence += f"; {count(len(lost_blocks), 'block')} lost in flight with all trials, and measured again"
    silent = lost - sum(exclusion.trials for one in results.main(Summary) for exclusion in one.exclusions)
    if silent > 0:
        return Crime(
            "Results left out in silence", True, f"{evidence}; {silent} have none.", "Look into these attempts."
        )
    if measured_again:
        gone = some([again.sentence for again in measured_again])
        evidence += f"; {count(len(measured_again), 'sealed attempt')} removed and measured again ({gone})"
        return Crime("Results left out in silence", True, f"{evidence}.", "Say why they were measured again.")
    return Crime("Results left out in silence", False, evidence + ".")


def _noise_floor(results: Results) -> Crime:
    floor = results.of(Validity)[0].floor
    within = sum(one.within_noise for one in results.of(Comparison))
    if floor.source == "none":
        evidence = f"{count(floor.control_trials, 'control trial')}. {floor.sentence}"
        return Crime("No measure of noise", True, evidence, f"Set design.control, or run {NOISE_STUDY} here.")
    inside = f" {count(within, 'comparison')} of {len(results.of(Comparison))} lies within it." if within else ""
    return Crime("No measure of noise", False, floor.sentence + inside)
