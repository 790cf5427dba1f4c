"""What a study in progress says of itself while a trial runs, in one small file of its store.

A trial's seconds are written when it is collected. Whoever wants to look earlier (`steelyard serve`, on this machine or
on a copy of the folder) reads this file: it is replaced about once a second, never synced, no part of any result, and
gone when the study is not in progress. A file that is not renewed tells that the process has died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from steelyard.lab import progress
from steelyard.model.histogram import merge, quantile_ns
from steelyard.store import StoreWriter
from steelyard.wire.record import Interval

LEAST_S: Final = 0.9
"""Between two writings."""
LAST_SECONDS: Final = 180
"""Newest intervals of load that are told, of all load nodes together and whatever the trial."""
LAST_TROUBLES: Final = 20


class Both:
    """Two watchers; each is told everything."""

    def __init__(self, *watchers: progress.Watcher) -> None:
        self._watchers = watchers

    def tell(self, event: progress.Event) -> None:
        """Pass an event on."""
        for watcher in self._watchers:
            watcher.tell(event)


class Live:
    """Folds events into what is told, and writes it on a beat. A disk that takes no more stops nothing: it is tried
    again on the next beat."""

    def __init__(self, writer: StoreWriter, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._clock = clock
        self._written_s = float("-inf")
        self._said: dict[str, Any] = {"begun_s": clock()}
        self._seconds: deque[dict[str, Any]] = deque(maxlen=LAST_SECONDS)
        self._troubles: deque[dict[str, Any]] = deque(maxlen=LAST_TROUBLES)
        self._nodes: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.live_ended()
        except OSError:
            # It is stale in a minute.
            return

    def tell(self, event: progress.Event) -> None:
        """Take note of an event; the next beat writes it."""
        now_s = self._clock()
        match event:
            case progress.StudyBegan():
                self._said |= {"study": event.study, "total": event.total, "todo": event.todo, "blocks": event.blocks}
            case progress.TimeLeft():
                left = {"seconds": event.seconds, "low_s": event.low_s, "high_s": event.high_s, "said_s": now_s}
                self._said["left"] = left
            case progress.StartBegan():
                start = {"start": event.start, "treatment": dict(event.treatment), "trials": event.trials}
                self._said |= {"block": event.block, "start": start, "trial": None}
                self._nodes.clear()
            case progress.TrialBegan():
                self._trial(event, now_s)
            case progress.PhaseEntered():
                phase = {"name": str(event.phase), "entered_s": now_s, "timeout_s": event.timeout_s}
                self._said |= {"phase": phase, "waiting": ""}
            case progress.Waiting():
                self._said["waiting"] = event.what
            case progress.Ticked():
                self._seconds.append(_second(event.node, event.record))
            case progress.Sampled():
                for sample in event.samples:
                    node = self._nodes.setdefault(sample.node, {"values": {}})
                    node["t_s"] = sample.t_s
                    node["values"][sample.metric] = sample.value
            case progress.TrialSealed():
                self._said["trial"] = None
            case progress.Trouble():
                self._troubles.append({"t_s": now_s, "message": event.message, "remedy": event.remedy})

    def _trial(self, event: progress.TrialBegan, now_s: float) -> None:
        planned = event.planned
        trial = {
            "id": planned.id,
            "treatment": dict(planned.treatment),
            "control": planned.control,
            "attempt": event.attempt,
            "number": event.number,
            "begun_s": now_s,
        }
        self._said |= {"block": planned.block, "trial": trial, "total": event.total}

    def beat(self) -> None:
        """Time has passed: write, if the last time is long enough ago."""
        now_s = self._clock()
        # Also when the clock was set back.
        if 0 <= now_s - self._written_s < LEAST_S:
            return
        self._written_s = now_s
        told = {
            "t_s": now_s,
            **self._said,
            "seconds": list(self._seconds),
            "nodes": self._nodes,
            "troubles": list(self._troubles),
        }
        try:
            self._writer.live(told)
        except OSError:
            return


def _second(node: str, interval: Interval) -> dict[str, Any]:
    """One interval of one load node: operations/s and milliseconds. `lag_ms_p99` from the interval's own buckets."""
    buckets = merge(one.buckets for one in interval.counts if one.measure == "lag")
    lag_ns = quantile_ns(buckets, 0.99)
    summary = interval.summary
    return {
        "t_s": interval.t_s,
        "node": node,
        "phase": interval.phase,
        "span_s": interval.seconds,
        "rate_per_s": summary.rate_per_s,
        "response_ms_p50": summary.response_ms_p50,
        "response_ms_p99": summary.response_ms_p99,
        "service_ms_p99": summary.service_ms_p99,
        "lag_ms_p99": None if lag_ns is None else lag_ns / 1e6,
        "pacing_ms_p99": summary.pacing_ms_p99,
        "errors": interval.errors,
        "backlog": interval.backlog,
        "cpu_fraction": interval.cpu_fraction,
    }
