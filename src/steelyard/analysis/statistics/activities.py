"""Activities: nodes that joined or left a cluster while it was measured, with the seconds of each phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.format import count, listed
from steelyard.heavy import pl
from steelyard.judging.activity_phases import arrival, phases, phases_after
from steelyard.model.activity import Activity
from steelyard.model.trial import TrialRecord

DIGITS: Final = 3
"""Lines of logs have milliseconds."""
ARRIVED: Final = {"scale-out": "joined", "scale-in": "left"}
"""Outcome of a node that arrived, by the kind of its activity."""


class NodeActivity(TreatmentRow):
    """One node of one activity of one trial."""

    trial_id: Annotated[str, Column(head="trial")]
    """Identity of the trial."""
    attempt: int
    """Which attempt of the trial, from 1."""
    start: str
    """Start that the trial was made on."""
    used: bool
    """Whether the trial counts: valid, no warm-up trial and no control."""
    activity: int
    """Which activity of the trial, from 1."""
    kind: str
    """scale-out: nodes join; scale-in: nodes leave."""
    node: str
    """Node that joins or leaves."""
    cause: str
    """Reason of the desired size, as the policy said it."""
    outcome: str
    """Of the node: joined, left, failed; unfinished: the load ended first."""
    waiting_s: Annotated[float | None, Column(unit="s", head="waiting")] = None
    """Until the nodes of the activity that come before it had arrived: one changes after the other."""
    provisioning_s: Annotated[float | None, Column(unit="s", head="provisioning")] = None
    """Until the site handed the node over. A spare was lent beforehand: what is left is the laboratory's own work, such
    as reading the facts of the node before it."""
    preparing_s: Annotated[float | None, Column(unit="s", head="preparing")] = None
    """Until its server was executed, instruments and files of the node included; of a node that leaves, until it began
    to."""
    starting_s: Annotated[float | None, Column(unit="s", head="starting")] = None
    """Until its server talked to the others."""
    schema_s: Annotated[float | None, Column(unit="s", head="schema")] = None
    """Until it had the schema and announced its ranges."""
    ring_delay_s: Annotated[float | None, Column(unit="s", head="ring delay")] = None
    """Wait until all members know of the change, by a setting of the system."""
    streaming_s: Annotated[float | None, Column(unit="s", head="streaming")] = None
    """Until the data had been streamed to the node, or from it."""
    opening_s: Annotated[float | None, Column(unit="s", head="opening")] = None
    """Until it listened for clients."""
    joining_s: Annotated[float | None, Column(unit="s", head="joining")] = None
    """Until the last member counted it as a member: the node is in service."""
    leaving_s: Annotated[float | None, Column(unit="s", head="leaving")] = None
    """Until the node was gone."""
    unfinished_s: Annotated[float | None, Column(unit="s", head="unfinished")] = None
    """Of a node that did not arrive: from its last mark to the end of the activity."""
    total_s: Annotated[float | None, Column(unit="s", head="in all")] = None
    """From the beginning of the activity until the node was in service, or left: the sum of these phases; none if it
    did neither."""
    discovery_s: Annotated[float | None, Column(unit="s", head="discovery")] = None
    """Once it was in service: until the load client sent its first operation to it. 0.2 to 4.2 s of this are the
    client's own wait before it reads the ring again; of PostgreSQL up to 1 s, until it asks the primary again. Below 0:
    it knew of the node before the last member did."""
    cleanup_s: Annotated[float | None, Column(unit="s", head="cleanup")] = None
    """Once all nodes of the activity had arrived: until the other members had removed what they no longer own."""
    streamed_bytes: int | None = None
    """Bytes that the node received when it joined, or sent when it left; none if the system did not say."""
    error: str = ""
    """Reason of a failure."""


def activities(context: Context) -> Iterator[NodeActivity]:
    """A row for each node of each activity, in order of time."""
    counted = context.frame.data.filter(pl.col("used") & ~pl.col("control"))
    used = set(counted.select("trial_id", "attempt").rows())
    for record in context.records:
        for place, activity in enumerate(record.activities, start=1):
            for node in activity.nodes:
                yield _row(record, place, activity, node, used=record.key in used)


def _row(record: TrialRecord, place: int, activity: Activity, node: str, *, used: bool) -> NodeActivity:
    arrived = arrival(activity, node)
    of_node = (*phases(activity, node), *phases_after(activity, node))

    def since_begun_s(t_s: float) -> float:
        # Marks are rounded and not differences, so that the phases still sum to the whole.
        return round(t_s - activity.begun_s, DIGITS)

    seconds: dict[str, Any] = {
        f"{phase.name.replace(' ', '_')}_s": round(since_begun_s(phase.to_s) - since_begun_s(phase.from_s), DIGITS)
        for phase in of_node
    }
    return NodeActivity(
        treatment=record.treatment, trial_id=record.id, attempt=record.attempt, start=record.start, used=used,
        activity=place, kind=activity.kind, node=node, cause=activity.cause,
        outcome=ARRIVED[activity.kind] if arrived else activity.outcome,
        total_s=since_begun_s(arrived.t_s) if arrived else None,
        streamed_bytes=activity.streamed_bytes.get(node), error="" if arrived else activity.error, **seconds,
    )  # fmt: skip


def not_arrived(rows: Sequence[NodeActivity], response: str) -> list[str]:
    """A sentence if nodes did not arrive in trials that count: the means of phases are of the others."""
    del response
    counted = [row for row in rows if row.used]
    lost = [row for row in counted if row.outcome not in ARRIVED.values()]
    if not lost:
        return []
    trials = len({(row.trial_id, row.attempt) for row in lost})
    how = [
        f"{number} {word}" for word in ("failed", "unfinished") if (number := sum(row.outcome == word for row in lost))
    ]
    return [
        f"Of {count(len(counted), 'node')} that were to join or leave, {len(lost)} did not ({listed(how)}), in "
        f"{count(trials, 'trial')}: the seconds of phases are of those that did, and so too short on average."
    ]


STATISTIC = Statistic(
    name="activities",
    row=NodeActivity,
    title="Nodes that joined or left while the cluster was measured, with the seconds of each phase",
    section=Section.ACTIVITIES,
    compute=activities,
    sentences=not_arrived,
    order=20,
    sentence_order=12,
    of_records=True,
)
