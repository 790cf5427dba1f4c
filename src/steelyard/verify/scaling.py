"""Recomputation of what a scaling policy saw and said in a trial: its points from samples and intervals, the sizes that
it desired from the points; what followed is in `activities`."""

from __future__ import annotations

import math
from itertools import islice
from typing import Final

from pydantic import ValidationError

from steelyard.heavy import pl
from steelyard.judging.measures import Facts
from steelyard.judging.policy_points import point
from steelyard.model.errors import SteelyardError
from steelyard.model.scaling import Point, Scaling
from steelyard.model.trial import TrialRecord
from steelyard.policy.base import Policy, ask_times, asked, bounds, policy_of, shipped
from steelyard.reading.replay import seen_of
from steelyard.verify import activities
from steelyard.verify.checklist import Book

RELATIVE: Final = 1e-9
"""Relative error of means: sums of the same numbers in another order."""
LATE: Final = "points of a policy's metric that still lacked readings when the policy was asked"
NOT_MADE: Final = "sizes desired by a policy that cannot be made here: another version, or a library is missing"
NOT_SHIPPED: Final = "sizes desired by a policy that is no part of Steelyard: `steelyard replay` asks it again"


def scaling(
    record: TrialRecord, samples: pl.DataFrame, facts: Facts, intervals: pl.DataFrame, where: str, book: Book
) -> None:
    """Check points and desired sizes of a trial under a policy."""
    stored = record.scaling
    if stored is None:
        lacking = record.settings.policy.changes and record.verdict.outcome == "valid"
        book.check("policy", not lacking, where, "a valid trial under a policy", "no record of what it saw and said")
        return
    activities.followed(record, stored, where, book)
    module = shipped(record.settings)
    if module is None:
        book.skip(NOT_SHIPPED)
        return
    try:
        policy = policy_of(record.settings, module)
    except (SteelyardError, ValidationError):
        book.skip(NOT_MADE)
        return
    times = tuple(islice(ask_times(policy), stored.asked))
    activities.supply(record, stored, times, where, book)
    _desired(record, stored, policy, max(times, default=0.0), where, book)
    seen = seen_of(policy.metric, record, samples, facts, intervals)
    for given in stored.points:
        again = point(policy.metric, given.t_s, policy.period_s, stored.begun_s, seen)
        if again.readings != given.readings:
            book.skip(LATE)
        else:
            book.check("policy", _alike(given, again), where, f"{policy.metric} at {given.t_s:g} s", given, again)


def _desired(record: TrialRecord, stored: Scaling, policy: Policy, until_s: float, where: str, book: Book) -> None:
    sizes = bounds(record.settings.policy, record.settings.site.nodes)
    again = asked(policy, sizes, stored.copies, stored.points, stored.supply, until_s)
    book.equal("policy", where, "desired sizes", stored.desired, again)


def _alike(stored: Point, again: Point) -> bool:
    if stored.value is None or again.value is None:
        return stored.value is again.value
    return math.isclose(stored.value, again.value, rel_tol=RELATIVE)
