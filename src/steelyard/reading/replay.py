"""Replay of a scaling policy over stored trials: which size it would have desired, and when.

Exact up to the first desired size that differs from what was done in the trial: after that, the metric is that of
another cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from pydantic import ValidationError

from steelyard.analysis.inference.estimates import share
from steelyard.analysis.treatments import label
from steelyard.format import count
from steelyard.heavy import pl
from steelyard.judging.measures import Facts, metrics_of
from steelyard.judging.membership import sizes
from steelyard.judging.policy_points import OF_CLIENTS, Seen, metrics, point
from steelyard.model.derived import Derived
from steelyard.model.errors import SteelyardError, StoreError, StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.outcome import ANSWERED
from steelyard.model.policy import THRESHOLD, THRESHOLD_OF, PolicyChoice
from steelyard.model.scaling import Desired, Point, Supply
from steelyard.model.trial import TrialRecord, by_cell
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.policy.base import Policy, asked, bounds, policy_of, shipped
from steelyard.reading.node_strips import readings_of_table
from steelyard.store.read import Store

VALID_UNTIL: Final = (
    "Valid until the first desired size that differs from what was done in a trial: after that, the metric is that of "
    "another cluster."
)
COPIES: Final = "system.replication_factor"
"""Setting with the copies of each row, below which no size is asked for, of trials without a policy."""


class ReplayedTrial(Value):
    """What the policy would have desired in one trial."""

    treatment: dict[str, Level]
    trial_id: str
    attempt: int
    start: str
    fired: bool
    """Whether it would have desired a change of size."""
    at_s: float | None = None
    """When, in seconds of the measured phase; None if it never did."""
    nodes: int | None = None
    reason: str = ""
    as_done: bool = False
    """Whether the trial was given this size at this time: then what follows is valid, too."""


class ReplayedTreatment(Value):
    """How often the policy would have fired in trials of one treatment."""

    treatment: dict[str, Level]
    fired: int
    share: Estimate
    """Fraction of its trials in which it would have."""


class Replayed(Value):
    """Result of a replay."""

    policy: str
    valid: str = VALID_UNTIL
    trials: tuple[ReplayedTrial, ...]
    treatments: tuple[ReplayedTreatment, ...]

    def sentences(self) -> Iterator[str]:
        """A sentence for each treatment: in what share of its trials the policy would have fired."""
        for treatment in self.treatments:
            share = treatment.share
            low, high = (100 * (end or 0.0) for end in (share.low, share.high))
            yield (
                f"{label(treatment.treatment)}: fired in {treatment.fired} of {count(share.n, 'trial')}, "
                f"{100 * share.value:.0f}% [{low:.0f}, {high:.0f}] (95%, {share.method})."
            )


def replay(store: Store, module: ModuleType, section: Mapping[str, Any], only: str = "") -> Replayed:
    """Ask a policy in every valid trial of a store. `section`: its settings, as section `policy` of a study has them;
    those that it lacks are the study's own, and without a largest size one node more than the trial began with. `only`:
    the id of one trial. Raises StoreError if there is no such trial, StudyError for a metric that has no points,
    ValidationError for wrong settings."""
    section = {**_of_study(store.study.policy, section, module), **section}
    if section.get(THRESHOLD_OF):
        raise StudyError(
            "a replay has no trials that give a threshold", f"--set {THRESHOLD}=NUMBER", key=THRESHOLD_OF,
            read=section[THRESHOLD_OF],
        )  # fmt: skip
    records = [record for record in store.trials() if record.verdict.outcome == "valid" and only in ("", record.id)]
    if not records:
        which = f"no valid trial {only}" if only else "no valid trial"
        raise StoreError(f"{store.folder}: {which}", "`steelyard status` lists trials", path=str(store.folder))
    cells = {
        cell: [_replayed(store, record, module, section) for record in of_cell]
        for cell, of_cell in by_cell(records).items()
    }
    return Replayed(
        policy=str(section["name"]),
        trials=tuple(trial for trials in cells.values() for trial in trials),
        treatments=tuple(_treatment(dict(cell), trials) for cell, trials in cells.items()),
    )


def _of_study(stated: PolicyChoice, section: Mapping[str, Any], module: ModuleType) -> dict[str, Any]:
    """The settings of a policy in the study of a store: those of its section, then those of the policy's own table."""
    table = stated.model_dump(mode="json", exclude_unset=True)
    own = table.get(section["name"])
    every = {**table, **(own if isinstance(own, dict) else {})}
    fields = [*module.Settings.model_fields, "min_nodes", "max_nodes"]
    known = {key: every[key] for key in fields if key in every and not isinstance(every[key], dict)}
    if THRESHOLD in section:
        known.pop(THRESHOLD_OF, None)
    return known


def _replayed(store: Store, record: TrialRecord, module: ModuleType, section: Mapping[str, Any]) -> ReplayedTrial:
    nodes = record.settings.site.nodes
    settings = TrialSettings({**record.settings.root, "policy": {"max_nodes": nodes + 1, **section}})
    first = _first_change(_asked_again(store, record, policy_of(settings, module), settings.policy), nodes)
    of_trial = {
        "treatment": record.treatment, "trial_id": record.id, "attempt": record.attempt, "start": record.start,
    }  # fmt: skip
    if first is None:
        return ReplayedTrial(**of_trial, fired=False)
    done = _first_change(record.scaling.desired if record.scaling else (), nodes)
    same = done is not None and (done.t_s, done.nodes) == (first.t_s, first.nodes)
    return ReplayedTrial(**of_trial, fired=True, at_s=first.t_s, nodes=first.nodes, reason=first.reason, as_done=same)


def sham_delay_s(store: Store, control: TrialRecord, record: TrialRecord) -> float | None:
    """How much later than in a trial its policy would have changed the size of its control, which has none, in the same
    direction; below 0: earlier. 0 if the policy follows no response; None if it would not have acted, or cannot be
    asked again (it is no part of Steelyard, a library is missing, or the control has no readings of its metric)."""
    if record.scaling is None or not record.scaling.points:
        return 0.0
    nodes, module = record.settings.site.nodes, shipped(record.settings)
    done = _first_change(record.scaling.desired, nodes)
    if module is None or done is None:
        return None
    try:
        policy = policy_of(record.settings, module, record.derived.value if record.derived else None)
        answers = _asked_again(store, control, policy, record.settings.policy)
    except (SteelyardError, ValidationError):
        return None
    first = _first_change(answers, nodes)
    return first.t_s - done.t_s if first is not None and (first.nodes > nodes) == (done.nodes > nodes) else None


def _first_change(desired: Sequence[Desired], nodes: int) -> Desired | None:
    return next((answer for answer in desired if answer.nodes != nodes), None)


def _asked_again(store: Store, record: TrialRecord, policy: Policy, choice: PolicyChoice) -> tuple[Desired, ...]:
    """What a policy says of a stored trial. Raises StudyError as `_points`."""
    nodes, intervals, span = record.settings.site.nodes, store.intervals(record), record.measured_span
    assert span is not None
    begun_s = record.scaling.begun_s if record.scaling else _begun_s(record, intervals, span[0])
    points = _points(policy, store, record, intervals, begun_s, span[1])
    supply = [Supply(0.0, nodes), *(Supply(t_s - begun_s, size) for t_s, size in sizes(nodes, record.activities))]
    copies = record.scaling.copies if record.scaling else int(record.settings.at(COPIES) or 1)
    return asked(
        policy, bounds(choice, nodes), copies, points, record.scaling.supply if record.scaling else supply,
        span[1] - begun_s,
    )  # fmt: skip


def _points(
    policy: Policy, store: Store, record: TrialRecord, intervals: pl.DataFrame, begun_s: float, ended_s: float
) -> list[Point]:
    """The points of a trial. Raises StudyError if the metric can have none, or has none in this trial."""
    if not policy.metric:
        return []
    if policy.metric not in metrics():
        raise StudyError(
            f"policy {policy.name} cannot follow {policy.metric}", f"allowed: {', '.join(metrics())}", key="metric",
            read=policy.metric, allowed=metrics(),
        )  # fmt: skip
    seen = seen_of(policy.metric, record, store.samples(record), store.facts(record), intervals)
    ends = [(place + 1) * policy.period_s for place in range(math.floor((ended_s - begun_s) / policy.period_s))]
    points = [point(policy.metric, end_s, policy.period_s, begun_s, seen) for end_s in ends]
    if all(value is None for _, value, _ in points):
        raise StudyError(
            f"trial {record.id} has no value of {policy.metric} in periods of {policy.period_s:g} s",
            "a metric that the study's probes read, or a shorter period_s", key="metric", read=policy.metric,
        )  # fmt: skip
    return points


def _begun_s(record: TrialRecord, intervals: pl.DataFrame, otherwise: float) -> float:
    first = intervals.filter(pl.col("phase").is_in(record.measured_phases))["t_s"].min()
    return otherwise if first is None else float(first)  # type: ignore[arg-type]


def acting_by_chance(store: Store, given: Derived, settings: TrialSettings, module: ModuleType) -> ReplayedTreatment:
    """How often the policy of these settings would have fired at a derived threshold in the trials that gave it. Raises
    as `replay`."""
    section = {**settings.policy.model_dump(mode="json"), THRESHOLD: given.value, THRESHOLD_OF: ""}
    records = [record for record in store.trials() if record.key in given.trials]
    return _treatment(records[0].treatment, [_replayed(store, record, module, section) for record in records])


def _treatment(treatment: dict[str, Level], trials: Sequence[ReplayedTrial]) -> ReplayedTreatment:
    fired, n = sum(trial.fired for trial in trials), len(trials)
    return ReplayedTreatment(treatment=treatment, fired=fired, share=share(fired, n, 0.95))


def seen_of(metric: str, record: TrialRecord, samples: pl.DataFrame, facts: Facts, intervals: pl.DataFrame) -> Seen:
    """What a trial's points rest on. `intervals`: the store's columns, all load nodes."""
    of_clients = metric in OF_CLIENTS
    readings = {} if of_clients or not metric else readings_of_table(samples, metrics_of([metric]))
    answers = _answers(intervals.filter(pl.col("phase").is_in(record.measured_phases))) if of_clients else {}
    return Seen(readings, facts, record.shares, answers, record.activities)


def _answers(intervals: pl.DataFrame) -> Mapping[str, list[tuple[float, list[tuple[int, int, int]]]]]:
    rows = intervals.filter((pl.col("measure") == "response") & pl.col("outcome").is_in(list(ANSWERED)))
    columns = ("node", "t_s", "seconds", "bucket_low_ns", "bucket_high_ns", "count")
    answers: dict[str, list[tuple[float, list[tuple[int, int, int]]]]] = {
        str(node): [] for node in intervals["node"].unique().sort()
    }
    for node, t_s, seconds, low, high, n in rows.select(columns).sort("node", "t_s").iter_rows():
        of_node = answers.setdefault(str(node), [])
        if not of_node or of_node[-1][0] != t_s + seconds:
            of_node.append((t_s + seconds, []))
        of_node[-1][1].append((int(low), int(high), int(n)))
    return answers
