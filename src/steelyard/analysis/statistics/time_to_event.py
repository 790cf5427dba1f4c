"""Time to event: when trials under a policy scaled out, and when response times were back in the range of before.

In some trials the event does not happen: their times are censored, and count as longer than what was watched. The trial
is the unit, its start what an interval rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from steelyard.analysis.inference import censored, estimates
from steelyard.analysis.inference.censored import Watched
from steelyard.analysis.inference.multiplicity import holm
from steelyard.analysis.row import Column, P, TreatmentRow
from steelyard.analysis.statistic import ActivityReturn, Context, Section, Statistic
from steelyard.analysis.treatments import Treatment, label
from steelyard.format import interval, number
from steelyard.heavy import pl
from steelyard.model.estimate import Estimate
from steelyard.model.policy import SCHEDULED
from steelyard.model.trial import TrialRecord

Event = Literal["scaled out", "back"]
Kind = Literal["scale-out", "scale-in"]


class EventTime(TreatmentRow):
    """Seconds until an event, over the used trials of a treatment."""

    event: Event
    """scaled out: the policy desired a larger size for the first time, counted from the beginning of the measurement
    (policy scheduled, whose times are set, has no such row). back: after an activity, the mean response time per second
    had been back in the range of before (up to its mean + 3 standard deviations over seconds) for 10 s on end, counted
    from the desired size to the beginning of these 10 s, and after the last second out of it while the activity lasted;
    0 of a trial that never left the range."""
    activity: int
    """Which activity of its trial, from 1."""
    kind: Kind
    """scale-out: nodes join; scale-in: nodes leave."""
    n: int
    """Used trials; of `back` those with a range: at least 10 s before the activity."""
    happened: int
    """Trials in which it happened before the next activity, or the end of the measurement."""
    share: Annotated[Estimate, Column(unit="%", head="in")]
    """`happened` in percent of `n`, with Clopper and Pearson's interval where each trial has a start of its own."""
    median_s: Annotated[float | None, Column(unit="s", head="median")] = None
    """Kaplan-Meier's median over trials. None if it happened in at most half of them."""
    restricted_mean: Annotated[Estimate, Column(unit="s", head="restricted mean")]
    """Mean over starts of the time until it happened, `of_s` where that is later or unknown: the integral of
    Kaplan-Meier's survival function from 0 to `of_s`. It has an interval from five starts on."""
    of_s: Annotated[float, Column(unit="s", head="of")]
    """The longest time for which at least half of the trials were watched."""
    never_left: int | None = None
    """Of `back`: trials that never left the range while the activity lasted."""
    during: Annotated[Estimate | None, Column(unit="s")] = None
    """Of `back`: from the desired size to the arrival of the last node, or the end of the activity; mean over
    trials."""
    against: str = ""
    """The first treatment in the table that differs in the level of one factor."""
    difference: Annotated[Estimate | None, Column(unit="s", bare=True)] = None
    """Restricted mean less that of `against`, both up to the smaller of their `of_s`."""
    p: P = None
    """That their times do not differ, by permutation of starts: of five against five 0.008 at least, of three against
    three 0.1."""
    p_holm: P = None
    """`p` after Holm's correction over the table."""

    @property
    def lacking(self) -> int:
        """Trials in which it did not happen while they were watched."""
        return self.n - self.happened

    @property
    def mean_words(self) -> str:
        """`restricted mean 402 s [143, 700] of 900 s`."""
        mean = self.restricted_mean
        words = f"restricted mean {number(mean.value, digits=3)} s {interval(mean)}".strip()
        return f"{words} of {number(self.of_s, digits=3)} s"


@dataclass(frozen=True)
class _Group:
    """Trials of a treatment that were watched for one event."""

    treatment: Treatment
    event: Event
    activity: int
    kind: Kind
    watched: Sequence[Watched]
    returns: Sequence[ActivityReturn] = ()

    @property
    def watched_for(self) -> tuple[Event, int, Kind]:
        return self.event, self.activity, self.kind


def event_times(context: Context) -> Iterator[EventTime]:
    """Of every treatment, in the order of the levels, when it scaled out; then of every treatment and activity when
    response times were back."""
    groups = [*_scaled_out(context), *_back(context)]
    against = [_against(group, groups[:place]) for place, group in enumerate(groups)]
    tests = [
        censored.difference(group.watched, other.watched, context.generator()) if other else None
        for group, other in zip(groups, against, strict=True)
    ]
    corrected = holm([None if test is None else test[1] for test in tests])
    for group, other, test, p_holm in zip(groups, against, tests, corrected, strict=True):
        known = {} if other is None or test is None else {
            "against": label(other.treatment), "difference": test[0], "p": test[1], "p_holm": p_holm,
        }  # fmt: skip
        yield _row(group, known, context.confidence)


def _scaled_out(context: Context) -> Iterator[_Group]:
    records = {record.key: record for record in context.records}
    for treatment in context.frame.treatments:
        rows = context.frame.where(treatment).filter(pl.col("used") & ~pl.col("control"))
        keys = rows.select("trial_id", "attempt").rows()
        watched = [one for key in keys if key in records and (one := until_scaled_out(records[key])) is not None]
        if watched:
            yield _Group(treatment, "scaled out", 1, "scale-out", watched)


def until_scaled_out(record: TrialRecord) -> Watched | None:
    """None if the policy of a trial could not choose when."""
    span, policy = record.measured_span, record.settings.policy
    if span is None or not policy.changes or policy.name == SCHEDULED:
        return None
    begun = (activity.begun_s - span[0] for activity in record.activities if activity.kind == "scale-out")
    return Watched(record.start, span[1] - span[0], next(begun, None))


def _back(context: Context) -> Iterator[_Group]:
    returns = context.within.returns
    for treatment in context.frame.treatments if returns else ():
        trials = context.frame.where(treatment).select("trial_id", "attempt", "start").rows()
        starts = {(trial, attempt): start for trial, attempt, start in trials}
        own = [one for one in returns if one.trial in starts]
        kinds: list[tuple[int, Kind]] = sorted({(one.during.activity, one.during.kind) for one in own})
        for activity, kind in kinds:
            of_activity = [one for one in own if (one.during.activity, one.during.kind) == (activity, kind)]
            watched = [Watched(starts[one.trial], one.returned.watched_s, one.returned.seconds) for one in of_activity]
            yield _Group(treatment, "back", activity, kind, watched, of_activity)


def _against(group: _Group, earlier: Sequence[_Group]) -> _Group | None:
    """The first of the earlier groups that was watched for the same and differs in the level of one factor."""
    for other in earlier:
        differ = [
            name
            for name in {**group.treatment, **other.treatment}
            if group.treatment.get(name) != other.treatment.get(name)
        ]
        if group.watched_for == other.watched_for and len(differ) == 1:
            return other
    return None


def _row(group: _Group, known: Mapping[str, Any], confidence: float) -> EventTime:
    watched, returns = group.watched, group.returns
    happened, starts = sum(one.after_s is not None for one in watched), {one.start for one in watched}
    share = estimates.if_independent(estimates.share(happened, len(watched), confidence), len(starts))
    of_s = censored.watched_by_half(watched)
    lengths = [(one.start, back.during.seconds) for one, back in zip(watched, returns, strict=False)]
    return EventTime(
        treatment=group.treatment, event=group.event, activity=group.activity, kind=group.kind, n=len(watched),
        happened=happened, share=share.mapped(lambda fraction: 100 * fraction, "%"), median_s=censored.median(watched),
        restricted_mean=censored.restricted_mean(watched, of_s, confidence), of_s=of_s,
        never_left=sum(one.returned.seconds == 0 for one in returns) if returns else None,
        during=estimates.by_start(lengths, "s", confidence) if lengths else None, **known,
    )  # fmt: skip


STATISTIC = Statistic(
    name="time_to_event",
    row=EventTime,
    title="Seconds until trials scaled out, and until the mean response time was back in the range of before",
    section=Section.ACTIVITIES,
    compute=event_times,
    order=4,
    of_records=True,
)
