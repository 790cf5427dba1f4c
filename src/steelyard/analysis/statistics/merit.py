"""Cost and energy per million operations, with throughput.

Cost and measured energy are the trials' responses, times a million. Where energy was not measured, it is that of the
declared power, which grows from idle to busy with the CPU of a node, the response `cpu_percent_mean` (Fan, Weber and
Barroso 2007, Power provisioning for a warehouse-sized computer, ISCA).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.judging.measures import MILLION, counted_nodes
from steelyard.model import power, responses
from steelyard.model.cost import Cost
from steelyard.model.estimate import Estimate
from steelyard.model.responses.cost import PER_MILLION as PRICED
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, TrialRecord

Basis = Literal["measured", "declared", "none"]


class Merit(TreatmentRow):
    """Throughput, cost and energy of one treatment."""

    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    paid_nodes: Annotated[float, Column(unit="nodes", head="nodes")]
    """Nodes that are paid for and fed: the mean over the measured phase, and over trials."""
    throughput_per_s: Annotated[Estimate, Column(unit="operations/s")]
    """Operations answered without error over execution time."""
    cost_per_million_operations: Annotated[Estimate | None, Column(unit="the study's currency")] = None
    """Price of the nodes for a million operations."""
    cost_basis: Basis = "none"
    """Declared or none."""
    energy_j_per_million_operations: Annotated[Estimate | None, Column(unit="J")] = None
    """Energy of the nodes for a million operations."""
    energy_basis: Basis = "none"
    """Measured, declared or none."""
    note: str = ""
    """Why a number is missing, and what it holds."""


RESPONSE = "throughput_per_s"
JOULES, LOAD_JOULES = "energy_j_per_operation", "load_energy_j_per_operation"
CPU, LOAD_CPU = "cpu_percent_mean", "load_cpu_percent_mean"
PER_MILLION = "per million operations"
METERED = "by the study's meters"
COUNTED = "processor packages and memory, not disks, fans or power supplies"
NOT_MEASURED = (
    "energy was not measured: the power of some node was not read throughout. Virtual machines and most small boards "
    "have no energy counters; on others, only root may read them"
)


def merits(
    frame: TrialFrame, study: Study, records: Sequence[TrialRecord], confidence: float = 0.95
) -> tuple[Merit, ...]:
    """One row per treatment with a used trial; empty if neither cost nor energy is declared, measured or asked for."""
    measured = responses.probe_of(JOULES) in study.probes or frame.data[JOULES].is_not_null().any()
    if not study.cost.declared and not measured:
        return ()
    nodes = {record.key: counted_nodes(record, study) for record in records}
    rows = (_merit(frame, treatment, study, nodes, measured, confidence) for treatment in frame.treatments)
    return tuple(one for one in rows if one is not None)


def _merit(
    frame: TrialFrame, treatment: Treatment, study: Study, nodes: Mapping[Attempt, tuple[float, int]], measured: bool,
    confidence: float,
) -> Merit | None:  # fmt: skip
    cost = study.cost
    rows = frame.values(RESPONSE, treatment).filter(pl.col(RESPONSE) > 0)
    trials = [(row, nodes[row["trial_id"], row["attempt"]]) for row in rows.iter_rows(named=True)]
    if not trials:
        return None

    def over(values: Sequence[float], unit: str) -> Estimate:
        starts = [str(row["start"]) for row, _ in trials]
        return estimates.by_start(list(zip(starts, values, strict=True)), unit, confidence)

    prices = [row[PRICED] for row, _ in trials]
    priced = None if None in prices else over(prices, f"{cost.currency} {PER_MILLION}")
    shared = "cpu" in frame.shares
    joules, bases = zip(*(_joules(row, counted, cost, shared) for row, counted in trials), strict=True)
    # Measured and declared energy are never averaged.
    basis: Basis = bases[0] if len(set(bases)) == 1 else "none"
    return Merit(
        treatment=treatment, n=len(trials), starts=rows["start"].n_unique(),
        paid_nodes=math.fsum(sum(counted) for _, counted in trials) / len(trials),
        throughput_per_s=over([float(row[RESPONSE]) for row, _ in trials], "operations/s"),
        cost_per_million_operations=priced, cost_basis="declared" if priced else "none",
        energy_j_per_million_operations=None if basis == "none" else estimates.with_gain_error(
            over(joules, f"J {PER_MILLION}"), cost.gain_error_percent if basis == "measured" else 0.0
        ),
        energy_basis=basis,
        note=_note(cost, basis, measured and "measured" not in bases, shared, metered=power.METER in study.probes),
    )  # fmt: skip


def _joules(row: Mapping[str, Any], counted: tuple[float, int], cost: Cost, shared: bool) -> tuple[float, Basis]:
    """Energy of a trial per million operations, and its basis. On a shared machine the energy of the database nodes is
    that of all."""
    load_nodes = counted[1]
    parts = [row[JOULES], row[LOAD_JOULES] if load_nodes and not shared else 0.0]
    if None not in parts:
        return sum(parts) * MILLION, "measured"
    watts = [cost.watts(row[name]) for name in (CPU, LOAD_CPU)]
    needed = [(each, nodes) for each, nodes in zip(watts, counted, strict=True) if nodes]
    drawn = math.fsum(each * nodes for each, nodes in needed if each is not None)
    known = all(each is not None for each, _ in needed)
    return (drawn / float(row[RESPONSE]) * MILLION, "declared") if known else (0.0, "none")


def _note(cost: Cost, basis: Basis, unread: bool, shared: bool, *, metered: bool) -> str:
    notes = [NOT_MEASURED] if unread else []
    if basis == "measured":
        where = "of the one machine that all nodes share with the load generator" if shared else "of all machines"
        notes.append(f"energy {where}: {METERED if metered else COUNTED}")
    elif basis == "declared":
        how = "a node counts as busy throughout" if cost.node_watts_idle is None else "by the share of cores busy"
        source = f" (source: {cost.node_watts_source})" if cost.node_watts_source else ""
        notes.append(f"energy is modelled, not measured: as declared in the study{source}, {how}")
    elif cost.node_watts_busy is not None:
        notes.append("no energy: trials use different energy sources, or CPU use was not sampled")
    if shared and (cost.price_per_node_hour is not None or basis == "declared"):
        notes.append("the nodes share one machine, so what is declared of a node is of hardware that was not there")
    return "; ".join(notes)


def _of_context(context: Context) -> tuple[Merit, ...]:
    return merits(context.frame, context.study, context.records, context.confidence)


STATISTIC = Statistic(
    name="merit",
    row=Merit,
    title="Throughput, cost and energy of each treatment",
    section=Section.ENERGY,
    compute=_of_context,
    order=10,
)
