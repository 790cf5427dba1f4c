"""Records for tests, every field with a plain value unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.model.histogram import Bucket
from steelyard.wire.record import NO_SUMMARY, Counts, Done, Hello, Interval

HELLO = Hello(format=1, agent="0.1.0", optimised=True, t_s=99.0)


def counts(
    buckets: Sequence[Bucket], operation: str = "read", outcome: str = "ok", measure: str = "response"
) -> Counts:
    """One table of an interval."""
    return Counts(operation=operation, outcome=outcome, measure=measure, buckets=tuple(buckets))


def interval(*tables: Counts, **changes: Any) -> Interval:
    """One second of the measured phase with these tables."""
    plain: dict[str, Any] = {
        "phase": "measure", "t_s": 100.0, "seconds": 1.0, "sent": 0, "done": 0, "errors": 0, "backlog": 0,
        "cpu_fraction": 0.1, "summary": NO_SUMMARY, "counts": tables,
    }  # fmt: skip
    return Interval(**{**plain, **changes})


def done(**changes: Any) -> Done:
    """The end of a measured phase of one second in which nothing was done."""
    plain: dict[str, Any] = {
        "phase": "measure", "first_sent_s": 100.0, "last_done_s": 101.0, "execution_ns": 10**9, "operations": 0,
        "errors": 0, "errors_by_kind": {}, "not_found": 0, "rows": 0, "cpu_ns": 1000, "busiest_thread_fraction": 0.1,
        "dropped": 0, "reconnections": 0,
    }  # fmt: skip
    return Done(**{**plain, **changes})
