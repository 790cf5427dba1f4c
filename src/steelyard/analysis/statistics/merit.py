"""Cost and energy per million operations, with throughput.

Cost is declared: price of a node-hour x nodes x hours / operations. Energy is measured, where the probe `energy` found
counters on every machine, else declared: the power of a node grows from idle to busy with the share of its cores that
is busy (Fan, Weber and Barroso 2007, Power provisioning for a warehouse-sized computer, ISCA).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Attempt, Context, Section, Statistic, Use
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.model.cost import Cost
from steelyard.model.estimate import Estimate

Basis = Literal["measured", "declared", "none"]


class Merit(TreatmentRow):
    """Throughput, cost and energy of one treatment."""

    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    nodes: int
    """Nodes that are paid for and fed."""
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


S_PER_H = 3600.0
MILLION = 1e6
RESPONSE = "throughput_per_s"
PER_MILLION = "per million operations"


def merits(frame: TrialFrame, cost: Cost, uses: Mapping[Attempt, Use], confidence: float = 0.95) -> tuple[Merit, ...]:
    """One row per treatment with a used trial; empty if no treatment has a known cost or energy."""
    if not cost.declared and all(one.measured_watts is None and not one.why_not for one in uses.values()):
        return ()
    rows = (_merit(frame, treatment, cost, uses, confidence) for treatment in frame.treatments())
    return tuple(one for one in rows if one is not None)


def _merit(
    frame: TrialFrame, treatment: Treatment, cost: Cost, uses: Mapping[Attempt, Use],
    confidence: float,
) -> Merit | None:  # fmt: skip
    rows = frame.values(RESPONSE, treatment).filter(pl.col(RESPONSE) > 0)
    trials = [
        (str(row["start"]), float(row[RESPONSE]), uses[row["trial_id"], row["attempt"]])
        for row in rows.iter_rows(named=True)
        if (row["trial_id"], row["attempt"]) in uses
    ]
    if not trials:
        return None

    def over(value: Callable[[float, Use], float], unit: str) -> Estimate:
        return estimates.by_start([(start, value(rate, use)) for start, rate, use in trials], unit, confidence)

    price, priced = cost.price_per_node_hour, None
    if price is not None:
        unit = f"{cost.currency} {PER_MILLION}"
        priced = over(lambda rate, use: price * use.nodes / S_PER_H / rate * MILLION, unit)
    watts = [_watts(cost, use) for _, _, use in trials]
    basis = _basis(watts)
    joules = None
    if basis != "none":
        known = [
            (start, (power or 0.0) / rate * MILLION) for (start, rate, _), (power, _) in zip(trials, watts, strict=True)
        ]
        joules = estimates.by_start(known, f"J {PER_MILLION}", confidence)
    return Merit(
        treatment=treatment, n=len(trials), starts=len({start for start, _, _ in trials}),
        nodes=max(use.nodes for _, _, use in trials), throughput_per_s=over(lambda rate, _: rate, "operations/s"),
        cost_per_million_operations=priced, cost_basis="declared" if priced else "none",
        energy_j_per_million_operations=joules, energy_basis=basis,
        note=_note(cost, [use for _, _, use in trials], basis, "cpu" in frame.shares),
    )  # fmt: skip


def _watts(cost: Cost, use: Use) -> tuple[float | None, Basis]:
    """Power of a trial's nodes and its basis: measured or declared."""
    if use.measured_watts is not None:
        return use.measured_watts, "measured"
    if cost.node_watts_busy is None:
        return None, "none"
    if cost.node_watts_idle is None:
        return use.nodes * cost.node_watts_busy, "declared"
    if use.busy is None:
        return None, "none"
    each = cost.node_watts_idle + (cost.node_watts_busy - cost.node_watts_idle) * min(1.0, max(0.0, use.busy))
    return use.nodes * each, "declared"


def _basis(watts: Sequence[tuple[float | None, Basis]]) -> Basis:
    """The common basis of a treatment's trials: measured and declared are never averaged."""
    kinds = {basis for _, basis in watts}
    return kinds.pop() if len(kinds) == 1 else "none"


def _note(cost: Cost, uses: Sequence[Use], basis: Basis, shared: bool) -> str:
    notes = []
    why = next((one.why_not for one in uses if one.why_not), "")
    if why:
        notes.append(f"energy was not measured: {why}")
    if basis == "measured":
        where = "of the one machine that all nodes share with the load generator" if shared else "of all machines"
        notes.append(f"energy {where}: processor packages and memory, not disks, fans or power supplies")
    elif basis == "declared":
        how = "a node counts as busy throughout" if cost.node_watts_idle is None else "by the share of cores busy"
        notes.append(f"energy as declared in the study, {how}")
    elif cost.node_watts_busy is not None:
        notes.append("no energy: not all trials have it by the same means, or nobody read how busy the nodes were")
    if shared and (cost.price_per_node_hour is not None or basis == "declared"):
        notes.append("the nodes share one machine, so what is declared of a node is of hardware that was not there")
    return "; ".join(notes)


def _of_context(context: Context) -> tuple[Merit, ...]:
    uses = context.within.uses
    return merits(context.frame, context.study.cost, uses, context.confidence) if uses else ()


STATISTIC = Statistic(
    name="merit",
    row=Merit,
    title="Throughput, cost and energy of each treatment",
    section=Section.ENERGY,
    compute=_of_context,
    order=10,
)
