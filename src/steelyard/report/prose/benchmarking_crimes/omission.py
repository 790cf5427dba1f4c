"""Benchmarking crimes of omission: results or evidence that are missing, confounded or simulated.

From Gernot Heiser's list: a subset of results, micro-benchmarks only, simulated systems, no significance, no evaluation
platform, the cost of throughput. The laboratory adds: the load generator, shared hardware, the order, aliased effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.merit import Merit
from steelyard.analysis.statistics.percentile import TrialPercentile
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import NODES, label
from steelyard.format import count, listed
from steelyard.judging.verdict import CEILING_UNKNOWN, command_to_calibrate
from steelyard.model import responses
from steelyard.model.facts import of_machines
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.report.prose.benchmarking_crimes.crime import Crime, some

PLATFORM: Final = ("cpu_model", "cores", "memory_mb", "kernel")
"""Facts without which a measurement cannot be repeated."""
LEAST_CLEAR: Final = 3
"""Interactions of this many factors or more are usually small, so aliases with them do no harm."""


def missing(
    study: Study, results: Results, records: Sequence[TrialRecord], facts: Mapping[str, Mapping[str, str]]
) -> tuple[Crime, ...]:
    """Every check with its finding."""
    return (
        _subset(results),
        _one_workload(study),
        _simulated(records),
        _no_variance(results),
        _platform(facts),
        _relative(results),
        _cost_of_throughput(study, results),
        _generator(records),
        _shared(results),
        _order(study),
        _aliases(results),
        _percentiles(results),
    )


def _subset(results: Results) -> Crime:
    gone = [label(one.treatment) for one in results.main(Summary) if not one.n]
    evidence = f"{len(gone)} of {count(len(results.main(Summary)), 'treatment')} without a used trial"
    evidence += f" ({some(gone)})" if gone else ""
    look, hint = results.look, "Say why these cells failed: it is a result."
    if look.missing:
        evidence = f"{look.done} of {count(look.planned, 'planned block')} are whole; {evidence}"
        hint = f"{count(look.missing, 'trial is', 'trials are')} missing: run `steelyard run` again to measure them."
    return Crime("A subset of what was planned", bool(gone or look.missing), f"{evidence}.", hint)


def _one_workload(study: Study) -> Crime:
    names = study.values_of(("workload", "workload.name"), study.workload.name)
    evidence = f"{count(len(names), 'workload')}: {some([str(name) for name in names])}"
    hint = "Do not generalise to other uses, or make the workload a factor."
    return Crime("One workload only", len(names) == 1, f"{evidence}.", hint)


def _simulated(records: Sequence[TrialRecord]) -> Crime:
    simulated = sum(record.settings.planted_contention is not None for record in records)
    evidence = f"{simulated} of {count(len(records), 'trial')} measured the simulated cluster"
    hint = "These figures describe the laboratory, not a database."
    return Crime("A simulated system", simulated > 0, f"{evidence}.", hint)


def _no_variance(results: Results) -> Crime:
    bare = [one.sentence.partition(":")[0] for one in results.of(Comparison) if one.change.low is None]
    spread = [label(one.treatment) for one in results.main(Summary) if one.n and one.sd is None]
    evidence = f"{len(bare)} of {count(len(results.of(Comparison)), 'comparison')} without an interval"
    evidence += f" ({some(bare)})" if bare else ""
    evidence += f"; {len(spread)} of {count(len(results.main(Summary)), 'cell')} without a standard deviation"
    return Crime(
        "No significance",
        bool(bare) or bool(spread),
        f"{evidence}.",
        "Raise design.starts: an interval needs three starts per level.",
    )


def _platform(facts: Mapping[str, Mapping[str, str]]) -> Crime:
    nodes = of_machines(facts)
    lacking = [f"{name} of {node}" for node, found in sorted(nodes.items()) for name in PLATFORM if not found.get(name)]
    evidence = f"{count(len(nodes), 'node')} with facts, {len(lacking)} of the facts {listed(list(PLATFORM))} missing"
    evidence += f" ({some(lacking)})" if lacking else ""
    return Crime(
        "Platform not described", not nodes or bool(lacking), f"{evidence}.", "Let the site say what its nodes are."
    )


def _relative(results: Results) -> Crime:
    shown = [one.treatment for one in results.main(Summary) if one.median is not None]
    bare = [
        one.sentence.partition(":")[0]
        for one in results.of(Comparison)
        if any({**one.others, one.factor: level} not in shown for level in (one.baseline, one.level))
    ]
    compared = count(len(results.of(Comparison)), "comparison")
    evidence = f"{len(bare)} of {compared} without the absolute values of both sides"
    return Crime("Relative numbers only", bool(bare), f"{evidence}{f' ({some(bare)})' if bare else ''}.", "Show both.")


def _cost_of_throughput(study: Study, results: Results) -> Crime:
    name = "Throughput without what it takes"
    if results.response != "throughput_per_s":
        return Crime(name, False, f"The main response is {results.response_label}, not throughput.")
    evidence = f"{count(len(study.probes), 'probe')} ({listed(list(study.probes)) or 'none'})"
    priced = sum(one.cost_basis != "none" or one.energy_basis != "none" for one in results.of(Merit))
    evidence += f"; {priced} of {count(len(results.main(Summary)), 'cell')} with cost or energy"
    probe = responses.probe_of("cpu_percent_mean")
    hint = f'Name the probe "{probe}" in `probes`: the same throughput may take more of the processor.'
    return Crime(name, probe not in study.probes, f"{evidence}.", hint)


def _generator(records: Sequence[TrialRecord]) -> Crime:
    bound = sum(any(one.kind.about.of_generator for one in record.verdict.reasons) for record in records)
    unknown = sum(
        record.verdict.outcome == "valid" and any(note.startswith(CEILING_UNKNOWN) for note in record.verdict.notes)
        for record in records
    )
    evidence = (
        f"{bound} of {count(len(records), 'trial')} left out because the load generator was the limit, none of them "
        f"blamed on the system; of {unknown} valid ones its ceiling is unknown"
    )
    command = command_to_calibrate(note for record in records for note in record.verdict.notes)
    return Crime("The generator may be the limit", unknown > 0, f"{evidence}.", f"Run {command} on this machine.")


def _shared(results: Results) -> Crime:
    shared = "cpu" in results.shares and results.size_factor in NODES
    sizes = max((len(levels) for name, levels in results.factors.items() if name in NODES), default=1)
    evidence = f"{count(sizes, 'cluster size')} on nodes that share {listed(list(results.shares)) or 'nothing'}"
    hint = "Do not conclude anything about scaling out: another node added no hardware."
    if results.own_limits:
        hint = "Another node added at most the processor time of its limit; memory, caches and disk were shared."
    return Crime("Scaling on shared hardware", shared, f"{evidence}.", hint)


def _order(study: Study) -> Crime:
    published = study.design.order == "published"
    how = "one treatment after the other" if published else f"balanced over blocks, seed {study.design.seed}"
    hint = 'design.order = "blocks": drift then does not look like an effect.'
    return Crime("Treatments in a fixed order", published, f"Trials came {how}.", hint)


def _aliases(results: Results) -> Crime:
    confounded = [
        f"{one.factor} with {one.aliases}"
        for one in results.of(MainEffect)
        if any(len(part.split(" x ")) < LEAST_CLEAR for part in one.aliases.split(" or ") if part)
    ]
    effects = count(len(results.of(MainEffect)), "effect")
    evidence = f"{len(confounded)} of {effects} of a fraction may be interactions of two factors"
    evidence += f" ({some(confounded)})" if confounded else ""
    hint = "Use a fraction of resolution 4, or a factorial over the factors that matter."
    return Crime("Effects that are confounded", bool(confounded), f"{evidence}.", hint)


def _percentiles(results: Results) -> Crime:
    bare = sum(one.percentile is None for one in results.of(TrialPercentile))
    every = count(len(results.of(TrialPercentile)), "percentile")
    evidence = f"{bare} of {every} of single trials rest on too few operations"
    hint = "They are left out; longer trials have them (1,000 operations for a p99)."
    return Crime("Percentiles of few operations", bare > 0, f"{evidence}.", hint)
