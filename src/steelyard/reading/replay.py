"""Replay of a scaling policy over stored trials: which size it would have desired, and when.

Exact up to the first desired size that differs from what was done in the trial: after that, the metric is that of
another cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from steelyard.analysis.treatments import label
from steelyard.format import count
from steelyard.heavy import pl, stats
from steelyard.judging.membership import sizes
from steelyard.judging.policy_points import point
from steelyard.model.errors import StoreError
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.scaling import Desired, Supply
from steelyard.model.trial import TrialRecord, by_cell
from steelyard.model.value import Value
from steelyard.policy.base import Bounds, Policy, asked
from steelyard.reading.policy_points import seen_of
from steelyard.store.read import Store

VALID_UNTIL: Final = (
    "Valid until the first desired size that differs from what was done in a trial: after that, the metric is that of "
    "another cluster."
)
EXACT: Final = "Clopper-Pearson interval over trials"


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


def replay(store: Store, policy: Policy, limits: Bounds, only: str = "") -> Replayed:
    """Ask a policy in every valid trial of a store. `limits`: its bounds, of which each trial has its own size at the
    beginning; `only`: the id of one trial. Raises StoreError if there is no such trial."""
    records = [record for record in store.trials() if record.verdict.outcome == "valid" and only in ("", record.id)]
    if not records:
        which = f"no valid trial {only}" if only else "no valid trial"
        raise StoreError(f"{store.folder}: {which}", "`steelyard status` lists trials", path=str(store.folder))
    cells = {
        cell: [_replayed(store, record, policy, limits) for record in of_cell]
        for cell, of_cell in by_cell(records).items()
    }
    return Replayed(
        policy=policy.name,
        trials=tuple(trial for trials in cells.values() for trial in trials),
        treatments=tuple(_treatment(dict(cell), trials) for cell, trials in cells.items()),
    )


def _replayed(store: Store, record: TrialRecord, policy: Policy, limits: Bounds) -> ReplayedTrial:
    intervals, span = store.intervals(record), record.measured_span
    assert span is not None
    begun_s = record.scaling.begun_s if record.scaling else _begun_s(record, intervals, span[0])
    seen = seen_of(policy.metric, record, store.samples(record), store.facts(record), intervals)
    periods = math.floor((span[1] - begun_s) / policy.period_s) if policy.metric else 0
    points = [
        point(policy.metric, (place + 1) * policy.period_s, policy.period_s, begun_s, seen) for place in range(periods)
    ]
    nodes = record.settings.site.nodes
    supply = [Supply(0.0, nodes), *(Supply(t_s - begun_s, size) for t_s, size in sizes(nodes, record.activities))]
    copies = record.scaling.copies if record.scaling else 1
    answers = asked(
        policy, limits._replace(nodes=nodes), copies, points, record.scaling.supply if record.scaling else supply,
        span[1] - begun_s,
    )  # fmt: skip
    first = next((answer for answer in answers if answer.nodes != nodes), None)
    of_trial = {
        "treatment": record.treatment, "trial_id": record.id, "attempt": record.attempt, "start": record.start,
    }  # fmt: skip
    if first is None:
        return ReplayedTrial(**of_trial, fired=False)
    return ReplayedTrial(
        **of_trial, fired=True, at_s=first.t_s, nodes=first.nodes, reason=first.reason, as_done=_done(record, first)
    )


def _done(record: TrialRecord, first: Desired) -> bool:
    done = record.scaling.desired[1:2] if record.scaling else ()
    return any((size.t_s, size.nodes) == (first.t_s, first.nodes) for size in done)


def _begun_s(record: TrialRecord, intervals: pl.DataFrame, otherwise: float) -> float:
    first = intervals.filter(pl.col("phase").is_in(record.measured_phases))["t_s"].min()
    return otherwise if first is None else float(first)  # type: ignore[arg-type]


def _treatment(treatment: dict[str, Level], trials: Sequence[ReplayedTrial]) -> ReplayedTreatment:
    fired, n = sum(trial.fired for trial in trials), len(trials)
    ends = stats.binomtest(fired, n).proportion_ci(confidence_level=0.95, method="exact")
    share = Estimate.of(fired / n, (float(ends.low), float(ends.high)), "", 0.95, n, EXACT)
    return ReplayedTreatment(treatment=treatment, fired=fired, share=share)
