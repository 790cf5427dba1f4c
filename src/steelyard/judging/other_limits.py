"""Limits that attempts were judged by and that are not the study's: they were changed in mid-study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from steelyard.format import count
from steelyard.model.study import Limits
from steelyard.model.trial import TrialRecord

NO_THRESHOLDS: Final = frozenset({"attempts", "quiet_wait_s", "start_timeout_s", "trial_timeout_s"})
"""Limits that bound the work of the laboratory and judge no trial."""


def other_limits(records: Iterable[TrialRecord], limits: Limits) -> tuple[str, ...]:
    """A sentence, without a full stop, for each limit and each value of it that attempts were judged by and that the
    study does not have: `2 attempts were judged by limits.steal_fraction = 0.1; the study has 0.2`."""
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
