"""The report's suspicion of itself: benchmarking crimes after Gernot Heiser's list, each with the number that tells.

Every check is always shown, so that a clean sheet is seen to be one. Source: Heiser, "Systems Benchmarking Crimes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from steelyard.analysis.results import Results, label
from steelyard.format import count, listed, number
from steelyard.judging.noise_floor import STUDY as NOISE_STUDY
from steelyard.model.load import Load
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.report.data.presentation import Figure
from steelyard.report.prose.benchmarking_crimes.crime import Crime as Crime  # noqa: PLC0414 - part of this module
from steelyard.report.prose.benchmarking_crimes.crime import some
from steelyard.report.prose.benchmarking_crimes.omission import missing

HARDWARE: Final = ("cpu_model", "cores", "memory_mb", "architecture", "kernel", "virtualisation", "disk", "java")
"""Facts of nodes that should be the same everywhere."""
RESPONSE_TIMES: Final = ("response_ms_mean", "response_ms_p50", "response_ms_p95", "response_ms_p99", "response_ms_max")
PERCENTILES: Final = ("p50", "p95", "p99")
FEWEST_FOR_INTERVAL: Final = 6


def crimes(
    study: Study,
    results: Results,
    records: Sequence[TrialRecord],
    facts: Mapping[str, Mapping[str, str]],
    figures: Mapping[str, Figure],
) -> tuple[Crime, ...]:
    """Every check with its finding, the guilty ones first."""
    found = (
        _baseline(results),
        _single_trials(results),
        _mean_of_percentiles(results),
        _mixed_hardware(records, facts),
        _truncated_axes(figures),
        _closed_loop(study, results, records),
        _units(results, figures),
        _left_out(results),
        _noise_floor(results),
        *missing(study, results, records, facts),
    )
    return tuple(sorted(found, key=lambda crime: not crime.guilty))


def _baseline(results: Results) -> Crime:
    name = "No baseline"
    treatments = len(results.summaries)
    if results.comparisons:
        bases = sorted({f"{one.factor} {one.baseline}" for one in results.comparisons})
        return Crime(name, False, f"{count(len(results.comparisons), 'comparison')} against {some(bases)}.")
    return Crime(
        name,
        True,
        f"{count(treatments, 'treatment')} and 0 comparisons: nothing says whether these numbers are good.",
        "Add a level to compare with, or lay the store beside a published table.",
    )


def _single_trials(results: Results) -> Crime:
    single = [label(one.treatment) for one in results.summaries if one.n == 1]
    few = [one for one in results.summaries if 1 < one.n < FEWEST_FOR_INTERVAL]
    starts = [one.starts for one in results.summaries if one.n]
    one_start = bool(results.hard) and bool(starts) and min(starts) == 1
    evidence = f"{len(single)} of {count(len(results.summaries), 'cell')} rest on n = 1 trial"
    evidence += f" ({some(single)})" if single else ""
    evidence += (
        f"; {len(few)} on fewer than {FEWEST_FOR_INTERVAL}, so that their medians have no interval" if few else ""
    )
    if one_start:
        alone = count(sum(one == 1 for one in starts), "cell has", "cells have")
        evidence += f"; {listed(list(results.hard))} varied over starts and {alone} 1 start"
    return Crime("A single trial", bool(single) or one_start, evidence + ".", "Raise design.trials, or design.starts.")


def _mean_of_percentiles(results: Results) -> Crime:
    name = "A mean of percentiles"
    if results.response.rpartition("_")[2] in PERCENTILES and any(one.n > 1 for one in results.summaries):
        most = max(one.n for one in results.summaries)
        return Crime(
            name,
            True,
            f"{results.response_label.capitalize()} is the main response: its means are over up to {most} trials' own "
            "percentiles, and are not the percentile of all operations.",
            "Read the medians and the percentile curves, which come from added histograms.",
        )
    return Crime(
        name, False, f"The main response is {results.response_label}; 0 percentiles are averaged over seconds or nodes."
    )


def _mixed_hardware(records: Sequence[TrialRecord], facts: Mapping[str, Mapping[str, str]]) -> Crime:
    differing = []
    served = {name.removeprefix("system:") for name in facts if name.startswith("system:")}
    nodes = {name: found for name, found in facts.items() if name in served} or {
        name: found for name, found in facts.items() if not name.startswith("system:") and name != "machine"
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
    told = "; ".join(differing) if differing else f"0 differences between {count(len(nodes), 'node')}"
    mend = "Compare only within one kind of hardware and one version, or make it a factor."
    return Crime("Mixed hardware or versions", bool(differing), told + ".", mend)


def _truncated_axes(figures: Mapping[str, Figure]) -> Crime:
    cut = []
    for figure in figures.values():
        lows = [low for panel in figure.panels for low in _axis_starts(panel.spec)]
        if lows:
            cut.append(f"figure “{figure.title}”: {count(len(lows), 'axis', 'axes')}, from {number(min(lows))}")
    told = some(cut) if cut else f"0 axes of {count(len(figures), 'figure')} begin above 0"
    mend = "These figures show spread and say so in their captions; read sizes of effects from the main chart."
    return Crime("Truncated axes", bool(cut), told + ".", mend)


def _axis_starts(spec: Any) -> Iterator[float]:
    """Where linear y axes begin that begin above 0, one a picture."""
    found = set(_domains(spec))
    yield from sorted(found)[:1]


def _domains(spec: Any) -> Iterator[float]:
    if isinstance(spec, Mapping):
        scale = spec.get("y", {}).get("scale") if isinstance(spec.get("y"), Mapping) else None
        if isinstance(scale, Mapping) and scale.get("type") != "log" and isinstance(scale.get("domain"), list):
            low = scale["domain"][0]
            if isinstance(low, int | float) and low > 0:
                yield float(low)
        for name, inner in spec.items():
            if name not in ("data", "datasets"):
                yield from _domains(inner)
    elif isinstance(spec, list):
        for inner in spec:
            yield from _domains(inner)


def _closed_loop(study: Study, results: Results, records: Sequence[TrialRecord]) -> Crime:
    name = "Response times of a closed loop compared"
    closed = [record for record in records if not _is_open(study, record)]
    told = f"{len(closed)} of {count(len(records), 'trial')} ran in a closed loop"
    shown = results.response in RESPONSE_TIMES or any(one.response in RESPONSE_TIMES for one in results.other_summaries)
    if not closed or not shown:
        return Crime(name, False, told + ("." if closed else ": every response time counts from when it was due."))
    main = f", and the main response is {results.response_label}" if results.response in RESPONSE_TIMES else ""
    return Crime(
        name,
        True,
        f"{told}{main}: a slow system is sent less, so that its response times flatter it.",
        'Compare response times at an offered rate: load.schedule = "constant" or "poisson".',
    )


def _is_open(study: Study, record: TrialRecord) -> bool:
    settings = record.settings.get("load")
    return (Load.model_validate(settings) if settings else study.load).is_open


def _units(results: Results, figures: Mapping[str, Figure]) -> Crime:
    bare = sorted({one.response for one in (*results.summaries, *results.other_summaries) if not one.unit})
    without_n = [figure.title for figure in figures.values() if "n = " not in figure.caption]
    told = f"{len(bare)} responses without a unit" + (f" ({some(bare)})" if bare else "")
    told += f"; {len(without_n)} captions without n" + (f" ({some(without_n)})" if without_n else "")
    return Crime("No units, no n", bool(bare) or bool(without_n), told + ".", "Name the unit where it is made.")


def _left_out(results: Results) -> Crime:
    lost = sum(one.excluded for one in results.summaries)
    share = lost / results.trials if results.trials else 0.0
    told = f"{lost} of {count(results.trials, 'attempt')} ({100 * share:.1f}%) left out, each listed with its reason"
    silent = lost - sum(exclusion.trials for one in results.summaries for exclusion in one.exclusions)
    if silent > 0:
        return Crime("Results left out in silence", True, f"{told}; {silent} have none.", "Look into these attempts.")
    return Crime("Results left out in silence", False, told + ".")


def _noise_floor(results: Results) -> Crime:
    floor = results.noise_floor
    within = sum(one.within_noise for one in results.comparisons)
    if floor.source == "none":
        told = f"{count(floor.control_trials, 'control trial')}. {floor.sentence}"
        return Crime("No measure of noise", True, told, f"Set design.control, or run {NOISE_STUDY} here.")
    inside = f" {count(within, 'comparison')} of {len(results.comparisons)} lies within it." if within else ""
    return Crime("No measure of noise", False, floor.sentence + inside)
