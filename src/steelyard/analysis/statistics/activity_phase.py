"""Phases of activities over trials: how long each took for each treatment.

The trial is the unit: ten nodes that join in one trial are one observation, their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from steelyard.analysis.inference import estimates
from steelyard.analysis.row import Column, TreatmentRow, meaning
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.activities import ARRIVED, NodeActivity
from steelyard.analysis.treatments import Treatment
from steelyard.model.activity import AFTER, OF_JOIN, OF_LEAVE
from steelyard.model.estimate import Estimate

PHASES: Final = tuple(dict.fromkeys([*OF_JOIN.values(), *OF_LEAVE.values()]))
"""Phases of a node without its waiting for others; their means sum to that of `A_NODE`."""
A_NODE: Final = "a node in all"
AN_ACTIVITY: Final = "the activity in all"
LATER: Final = tuple(AFTER.values())
MEANINGS: Final = {
    A_NODE: "The sum of the phases above: since the activity began, or since the node before it had arrived.",
    AN_ACTIVITY: "From the beginning of the activity until its last node had arrived.",
}


class ActivityPhase(TreatmentRow):
    """One phase of the activities of one treatment."""

    kind: str
    """scale-out: nodes join; scale-in: nodes leave."""
    phase: str
    """Phase of a node, or several together."""
    mean: Annotated[Estimate, Column(unit="s")]
    """Mean over the used trials, each with the mean of its nodes that arrived; of a phase that some of them did not
    have, as 0. Its interval is over starts."""
    shortest_s: Annotated[float, Column(unit="s", head="shortest")]
    """Of the trials."""
    longest_s: Annotated[float, Column(unit="s", head="longest")]
    """Of the trials."""
    n: int
    """Used trials with the phase."""
    arrived: int
    """Nodes that joined or left in them."""
    meaning: str
    """What happens in the phase."""


def activity_phases(context: Context) -> Iterator[ActivityPhase]:
    """Every phase of each treatment and kind of activity, in the order of the levels and of time."""
    rows = [row for row in context.of(NodeActivity) if row.used and row.outcome in ARRIVED.values()]
    for treatment in context.frame.treatments if rows else ():
        trials = set(context.frame.where(treatment).select("trial_id", "attempt").rows())
        for kind in ARRIVED:
            own = [row for row in rows if row.kind == kind and (row.trial_id, row.attempt) in trials]
            if own:
                yield from _of_kind(treatment, kind, own, context)


def _of_kind(
    treatment: Treatment, kind: str, rows: Sequence[NodeActivity], context: Context
) -> Iterator[ActivityPhase]:
    trials: dict[tuple[str, int], list[NodeActivity]] = {}
    for row in rows:
        trials.setdefault((row.trial_id, row.attempt), []).append(row)
    several = len(rows) > len({(row.trial_id, row.attempt, row.activity) for row in rows})
    for phase in (*PHASES, A_NODE, *((AN_ACTIVITY,) if several else ()), *LATER):
        known = [
            (nodes[0].start, value, len(nodes))
            for nodes in trials.values()
            if (value := _of_trial(phase, nodes)) is not None
        ]
        if known:
            values = [value for _, value, _ in known]
            of_starts = [(start, value) for start, value, _ in known]
            yield ActivityPhase(
                treatment=treatment, kind=kind, phase=phase,
                mean=estimates.by_start(of_starts, "s", context.confidence),
                shortest_s=min(values), longest_s=max(values), n=len(known), arrived=sum(nodes for *_, nodes in known),
                meaning=MEANINGS.get(phase) or meaning(NodeActivity, _column(phase)),
            )  # fmt: skip


def _of_trial(phase: str, nodes: Sequence[NodeActivity]) -> float | None:
    """The mean of a phase over the nodes of a trial, or over its activities; None if none had it."""
    if phase == A_NODE:
        return math.fsum((row.total_s or 0.0) - (row.waiting_s or 0.0) for row in nodes) / len(nodes)
    if phase == AN_ACTIVITY:
        last_s = {row.activity: row.total_s or 0.0 for row in sorted(nodes, key=lambda row: row.total_s or 0.0)}
        return math.fsum(last_s.values()) / len(last_s)
    known = [value for row in nodes if (value := getattr(row, _column(phase))) is not None]
    if not known:
        return None
    return math.fsum(known) / (len(known) if phase in LATER else len(nodes))


def _column(phase: str) -> str:
    return f"{phase.replace(' ', '_')}_s"


STATISTIC = Statistic(
    name="activity_phase",
    row=ActivityPhase,
    title="Seconds of each phase of a node that joined or left, over trials",
    section=Section.ACTIVITIES,
    compute=activity_phases,
    order=10,
    of_records=True,
)
