"""A made-up study of clusters that grow while they are measured, next to some that keep their size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.model.activity import Activity, Mark
from steelyard.model.plan import PlannedTrial
from steelyard.model.server_warm_up import ServerWarmth, WorkloadWarmth
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.plan import expand
from steelyard.store.write import StoreWriter
from steelyard.study.read import read_text
from steelyard.wire.record import Interval
from tests.unit.wire import made

STUDY = """
format = 1
[study]
name = "growing"
question = "What does a scale-out cost while it lasts?"
[site]
name = "local"
nodes = 3
[system]
name = "simulated"
warm_up = "2:1000"
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 1000
duration_s = 60
[policy]
times = [[20, 5]]
[design]
starts = 4
trials = 1
seed = 3
[factors]
"policy.name" = ["none", "scheduled"]
"""
BEGUN_S = 1_790_000_000.0
SECONDS = 60
STEPS_S = (
    ("lent", 0.0001), ("started", 0.6), ("gossiping", 2.4), ("ring-delay", 2.7), ("streaming", 5.7), ("streamed", 9.2),
    ("listening", 9.5), ("in-service", 10.1),
)  # fmt: skip
"""Marks of a join, in seconds since the node's turn."""


def growth(begun_s: float, slower: float = 1.0, *, nodes: Sequence[str] = ("n4", "n5"), **changes: Any) -> Activity:
    """Nodes that join one after the other, their steps `slower` times as long, and that the client then discovers."""
    marks: list[Mark] = []
    turn_s = begun_s
    for node in nodes:
        marks += [
            Mark(name=name, t_s=turn_s + slower * at_s, node=node, by="seen" if name == "lent" else "log")
            for name, at_s in STEPS_S
        ]
        turn_s = marks[-1].t_s
        marks.append(Mark(name="routed", t_s=turn_s + 1.5, node=node, by="load"))
    marks.append(Mark(name="cleaned", t_s=turn_s + 2.0, node="n5"))
    given = {
        "kind": "scale-out", "nodes": tuple(nodes), "cause": "scheduled: 5 nodes at 20 s", "begun_s": begun_s,
        "ended_s": turn_s + 2.0, "outcome": "done", "streamed_bytes": dict.fromkeys(nodes, 6000000),
        "marks": tuple(sorted(marks, key=lambda mark: mark.t_s)),
    }  # fmt: skip
    return Activity.model_validate({**given, **changes})


def record(planned: PlannedTrial, begun_s: float, *activities: Activity, **changes: Any) -> TrialRecord:
    """A sealed, valid trial."""
    warmth = ServerWarmth(
        seconds=30, rounds=3, operations=9, reached=True,
        workloads={"ycsb-c": WorkloadWarmth(service_ms=1.0, change_percent=0.0, noise_percent=5.0)},
    )  # fmt: skip
    given = {
        **planned.model_dump(exclude={"start"}), "study": "growing", "planned_start": planned.start,
        "start": planned.start, "order_in_start": 1, "begun_s": begun_s, "ended_s": begun_s + SECONDS + 1,
        "verdict": Verdict(outcome="valid"), "activities": activities, "server_warm_up": warmth, "shares": ("cpu",),
        "responses": Responses(
            operations=60_000, execution_time_ms=60_000.0 + 10 * planned.block, throughput_per_s=1000.0,
            response_ms_p99=5.0 + planned.block, response_ms_mean=1.0 + planned.block / 10,
        ),
        "phases": (PhaseTime(phase=Phase.MEASURE, entered_s=begun_s, left_s=begun_s + SECONDS),),
    }  # fmt: skip
    return TrialRecord.model_validate({**given, **changes})


def intervals(begun_s: float, *activities: Activity) -> list[Interval]:
    """A second each, slower while nodes join."""
    found = []
    for second in range(SECONDS):
        busy = any(one.begun_s <= begun_s + second <= (one.ended_s or 0.0) for one in activities)
        by = 2 if busy else 1
        buckets = [(by * 700_000, by * 705_000, 900), (by * 5_000_000, by * 5_040_000, 100)]
        counts = [made.counts(buckets, measure=measure) for measure in ("response", "service", "lag")]
        found.append(made.interval(*counts, t_s=begun_s + second, sent=1000, done=1000))
    return found


def records(text: str = STUDY) -> tuple[TrialRecord, ...]:
    """Every planned trial, in order; those whose policy is `scheduled` grow, in each block more slowly."""
    found = []
    for planned in expand(read_text(text)).trials:
        begun_s = BEGUN_S + 200.0 * planned.position
        grows = planned.settings.policy.changes
        activities = (growth(begun_s + 20.0, 1 + 0.1 * planned.block),) if grows else ()
        found.append(record(planned, begun_s, *activities))
    return tuple(found)


def store(root: Path, text: str = STUDY) -> Path:
    """A store of these trials; the study's folder."""
    study = read_text(text)
    with StoreWriter(root, study.study.name) as writer:
        writer.intend(study, text, expand(study))
        for one in records(text):
            draft = writer.draft(one.id, one.attempt)
            draft.intervals("l1", intervals(one.begun_s, *one.activities))
            draft.seal(one)
        return writer.folder
