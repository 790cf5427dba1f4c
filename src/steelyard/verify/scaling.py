"""Recomputation of what a scaling policy saw and said in a trial: its points from samples and intervals, the sizes that
it desired from the points; what followed is in `activities`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Final

from pydantic import ValidationError

from steelyard.heavy import pl
from steelyard.judging.derived import mean_over_starts, sources
from steelyard.judging.measures import Facts
from steelyard.judging.policy_points import point
from steelyard.judging.settings_hash import canonical
from steelyard.model.derived import Derived
from steelyard.model.errors import SteelyardError
from steelyard.model.scaling import Point, Scaling
from steelyard.model.trial import Attempt, TrialRecord
from steelyard.policy.base import Policy, ask_times, asked, bounds, policy_of, shipped
from steelyard.reading.replay import ReplayedTreatment, acting_by_chance, seen_of
from steelyard.store.read import Store
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
        policy = policy_of(record.settings, module, record.derived.value if record.derived else None)
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


def thresholds(store: Store, records: Mapping[Attempt, tuple[TrialRecord, str]], book: Book) -> None:
    """Check derived thresholds: each is the mean of all valid trials without a policy that came before, in some of
    which the policy would have acted at it."""
    acted: dict[tuple[Derived, str], ReplayedTreatment] = {}
    every = [record for record, _ in records.values()]
    for record, where in records.values():
        stored = record.derived
        if not record.settings.policy.threshold_of or (stored is None and record.verdict.outcome != "valid"):
            continue
        if stored is None:
            book.check("policy", False, where, "threshold that other trials gave", "none", "a threshold")
            continue
        given = sources(record.settings, (other for other in every if other.begun_s < record.begun_s))
        book.equal("policy", where, f"trials that gave {stored.level}", stored.trials, tuple(one.key for one in given))
        again = mean_over_starts(given, stored.response)
        same = again is not None and math.isclose(stored.mean, again, rel_tol=RELATIVE)
        book.check("policy", same, where, f"mean that gave {stored.level}", stored.mean, again)
        module, used = shipped(record.settings), (stored, canonical(record.settings.part("policy")))
        if not same or not stored.trials or stored.acted is None or module is None:
            continue
        try:
            acted[used] = acted.get(used) or acting_by_chance(store, stored, record.settings, module)
        except (SteelyardError, ValidationError, IndexError):  # its trials, or their samples, are not there
            book.skip(NOT_MADE)
            continue
        book.equal(
            "policy", where, "trials in which its policy would have acted by chance", stored.acted, acted[used].fired
        )
