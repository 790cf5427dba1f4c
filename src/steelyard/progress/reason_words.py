"""Short texts of verdict reasons by kind (count, range of the measured numbers, limit, the option's name), and of how
far a stopping rule is.

Also lists limits that attempts were judged by but that the study no longer has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from steelyard.format import count, duration, number, percent
from steelyard.judging.stopping import Narrowing, plus_minus
from steelyard.model.study import Limits
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value
from steelyard.model.verdict_reasons import GUESTS, Reason, ReasonKind

SHARE: Final = "of "
"""Prefix of the units of shares."""
MOST_DETAIL: Final = 200
DIGITS: Final = 3
MORE_DIGITS: Final = 5
NO_THRESHOLDS: Final = frozenset({"attempts", "quiet_wait_s", "start_timeout_s", "trial_timeout_s"})
"""Limits on the laboratory's own work, by which no trial is judged."""


class ReasonGroup(Value):
    """All reasons of one kind."""

    kind: str
    count: int
    low: float | None = None
    """Smallest measured number."""
    high: float | None = None
    limit: float | None = None
    unit: str = ""
    option: str = ""
    """The study's option that sets the limit: `limits.NAME`."""
    detail: str = ""
    """Detail, shortened, if no number was measured."""

    @property
    def words(self) -> str:
        """`1.2 to 14 ms, limit 10 ms, limits.lag_p99_ms`."""
        if self.low is None or self.high is None:
            return self.detail
        ends = (self.low, self.high)
        alike = {_quantity(value, self.unit) for value in ends if value != self.limit}
        # A number that crossed the limit must not round to it.
        digits = MORE_DIGITS if self.limit is not None and _quantity(self.limit, self.unit) in alike else DIGITS
        numbers = dict.fromkeys(_quantity(end, self.unit, digits) for end in ends)
        unit = f" {self.unit}" if self.unit else ""
        of_limit = "" if self.unit.startswith(SHARE) else unit
        limit = [] if self.limit is None else [f"limit {_quantity(self.limit, self.unit)}{of_limit}"]
        return ", ".join([f"{' to '.join(numbers)}{unit}", *limit, *([self.option] if self.option else [])])

    @property
    def sentence(self) -> str:
        """`background load 29 x (84% to 94% of all CPU time, limit 20%, limits.background_cpu_fraction)`."""
        times = f" {self.count} x" if self.count > 1 else ""
        return f"{self.kind}{times}{f' ({self.words})' if self.words else ''}"


def groups(reasons: Iterable[Reason]) -> tuple[ReasonGroup, ...]:
    """Reasons grouped by kind, the most frequent first."""
    by_kind: dict[tuple[str, str], list[Reason]] = {}
    for reason in reasons:
        by_kind.setdefault((_name(reason), option_of(reason)), []).append(reason)
    of_kinds = [_group(kind, option, members) for (kind, option), members in by_kind.items()]
    return tuple(sorted(of_kinds, key=lambda group: -group.count))


def _group(kind: str, option: str, members: Sequence[Reason]) -> ReasonGroup:
    measured = [reason.measured for reason in members if reason.measured is not None]
    limits = {reason.threshold for reason in members}
    details = list(dict.fromkeys(reason.detail for reason in members if reason.detail))
    more = f", and {len(details) - 1} more" if len(details) > 1 else ""
    return ReasonGroup(
        kind=kind,
        count=len(members),
        low=min(measured, default=None),
        high=max(measured, default=None),
        limit=limits.pop() if len(limits) == 1 else None,
        unit=members[0].unit,
        option=option,
        detail=f"{_short(details[0])}{more}" if details and not measured else "",
    )


def short(reason: Reason) -> str:
    """One reason: `background load: 93% of all CPU time, limit 20%, limits.background_cpu_fraction`, with its
    detail."""
    (group,) = groups([reason])
    detail = f" ({reason.detail})" if reason.detail and reason.measured is not None else ""
    return f"{group.kind}{f': {group.words}' if group.words else ''}{detail}"


def waiting_words(reasons: Iterable[Reason], waited_s: float, limit_s: float) -> str:
    """A sentence on the wait for a quiet machine: what is busy, the limit, its option, and the maximum wait."""
    busy = "; ".join(short(reason) for reason in reasons)
    if limit_s <= 0:
        return f"the machine is busy, checking it once more: {busy}"
    waited = f"{duration(math.floor(waited_s))} of at most " if waited_s >= 1 else "at most "
    return f"waiting for a quiet machine, {waited}{duration(limit_s)} (limits.quiet_wait_s): {busy}"


def other_limits(records: Iterable[TrialRecord], limits: Limits) -> tuple[str, ...]:
    """A sentence without a full stop for each limit value that attempts were judged by but that the study no longer
    has: `2 attempts were judged by limits.steal_fraction = 0.1; the study has 0.2`."""
    others = Counter(
        (name, getattr(record.limits, name))
        for record in records
        for name in type(limits).model_fields
        if name not in NO_THRESHOLDS and getattr(record.limits, name) != getattr(limits, name)
    )
    return tuple(
        f"{count(times, 'attempt was', 'attempts were')} judged by limits.{name} = {value:g}; the study has "
        f"{getattr(limits, name):g}"
        for (name, value), times in sorted(others.items())
    )


def option_of(reason: Reason) -> str:
    """The study's option that sets a reason's limit; empty if none does."""
    if reason.kind is ReasonKind.STEAL:
        field = "steal_fraction" if reason.detail.startswith(GUESTS) else "background_cpu_fraction"
    else:
        field = reason.kind.about.limit
    return f"limits.{field}" if field else ""


def _name(reason: Reason) -> str:
    if reason.kind is ReasonKind.STEAL:
        return "steal" if reason.detail.startswith(GUESTS) else "background load"
    return reason.kind.value


def _quantity(value: float, unit: str, digits: int = DIGITS) -> str:
    if unit.startswith(SHARE):
        return percent(value, digits=digits - 1)
    return number(value, digits=digits, trim=True)


def _short(text: str) -> str:
    return text if len(text) <= MOST_DETAIL else f"{text[:MOST_DETAIL].rstrip()}..."


def narrowing_words(cell: Narrowing, starts: int | None = None) -> str:
    """Precision of one treatment: `±1.9%, narrowing`.

    `starts`: those of the value next to it; where the rule has judged another number of them, it is added.
    """
    of = f" (of {count(cell.n, 'start')})" if starts is not None and cell.n != starts else ""
    if cell.half_width_percent is None:
        return f"{cell.state}{of}"
    return f"{plus_minus(cell.half_width_percent)}, {cell.state}{of}"
