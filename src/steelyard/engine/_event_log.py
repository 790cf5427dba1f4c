"""Spark's event log as it grows: stages, tasks, the time of the Spark jobs. Pure.

Lines are JSON objects (`org.apache.spark.util.JsonProtocol`); those of kinds that say nothing of this are passed over.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CHECK = "check"
"""Job group of the Spark jobs that check the output: they are no part of the work."""
GROUP = "spark.jobGroup.id"
SUCCESS, KILLED = "Success", "TaskKilled"
MS_PER_S = 1000.0


@dataclass
class Stage:
    """A stage with all of its attempts. Times in seconds by the clock of the driver."""

    number: int
    tasks: int = 0
    begun_s: float = 0.0
    ended_s: float | None = None
    """None while it runs."""
    task_s: list[float] = field(default_factory=list)
    """Times of the tasks that succeeded."""
    shuffle_bytes: int = 0
    """Written for other stages."""
    failed: int = 0
    """Attempts at tasks that failed."""
    repeated: int = 0
    """Attempts at tasks after the first: again after a failure, or speculatively."""

    def values(self) -> dict[str, float]:
        """The stage in numbers, by metric."""
        return {
            "job_stage": float(self.number),
            "job_stage_s": (self.ended_s or self.begun_s) - self.begun_s,
            "job_stage_tasks": float(self.tasks),
            "job_task_s_p50": statistics.median(self.task_s) if self.task_s else 0.0,
            "job_task_s_max": max(self.task_s, default=0.0),
            "job_shuffle_bytes": float(self.shuffle_bytes),
            "job_tasks_failed": float(self.failed),
            "job_tasks_repeated": float(self.repeated),
        }


class EventLog:
    """The log of one application so far."""

    def __init__(self) -> None:
        self._rest = b""
        self._spans: dict[int, list[float]] = {}
        """Spark job to its begin and, once it has ended, its end."""
        self._checks: set[int] = set()
        self._of_checks: set[int] = set()
        self._stages: dict[int, Stage] = {}
        self._planned: set[int] = set()
        self.bytes = 0
        """Bytes that were taken in."""
        self.failure = ""
        """Reason of the first Spark job that failed."""
        self.hosts: set[str] = set()
        """Addresses of the nodes on which tasks have begun."""

    def feed(self, text: bytes) -> None:
        """Take in what was added. Raises ValueError for a line that is not an event."""
        self.bytes += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in filter(None, lines):
            event = json.loads(line)
            handle = _HANDLES.get(event["Event"])
            if handle is not None:
                handle(self, event)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of the work that have begun, in order of their numbers."""
        return tuple(self._stages[number] for number in sorted(self._stages.keys() - self._of_checks))

    @property
    def work_s(self) -> float | None:
        """Time from the begin of the first Spark job of the work to the end of the last; None if none has ended."""
        return _length_s([span for number, span in self._spans.items() if number not in self._checks])

    @property
    def check_s(self) -> float:
        """The same of the Spark jobs that check the output."""
        return _length_s([self._spans[number] for number in self._checks]) or 0.0

    @property
    def words(self) -> str:
        """Progress in words; empty before the first Spark job."""
        if not self._spans:
            return ""
        if self._checks:
            return "its output is checked"
        stages = self.stages
        running = [one for one in stages if one.ended_s is None]
        of = max(len(self._planned), len(stages))
        if not running:
            return f"{len(stages)} of {of} stages done"
        now = running[0]
        place = sum(one.number <= now.number for one in stages)
        return f"stage {place} of {of}, {len(now.task_s)} of {now.tasks} tasks done"

    def _job_begins(self, event: Mapping[str, Any]) -> None:
        number = event["Job ID"]
        self._spans[number] = [event["Submission Time"] / MS_PER_S]
        if (event.get("Properties") or {}).get(GROUP) == CHECK:
            self._checks.add(number)
            self._of_checks.update(set(event["Stage IDs"]) - self._stages.keys())
        else:
            self._planned.update(event["Stage IDs"])

    def _job_ends(self, event: Mapping[str, Any]) -> None:
        self._spans[event["Job ID"]].append(event["Completion Time"] / MS_PER_S)
        if event["Job Result"]["Result"] != "JobSucceeded":
            reason = (event["Job Result"].get("Exception") or {}).get("Message", "")
            self.failure = self.failure or reason.partition("\n")[0]

    def _stage_begins(self, event: Mapping[str, Any]) -> None:
        about = event["Stage Info"]
        begun_s = about.get("Submission Time", 0) / MS_PER_S
        stage = self._stages.setdefault(about["Stage ID"], Stage(about["Stage ID"], begun_s=begun_s))
        stage.tasks, stage.ended_s = max(stage.tasks, about["Number of Tasks"]), None

    def _stage_ends(self, event: Mapping[str, Any]) -> None:
        about = event["Stage Info"]
        self._stages[about["Stage ID"]].ended_s = about["Completion Time"] / MS_PER_S

    def _task_begins(self, event: Mapping[str, Any]) -> None:
        self.hosts.add(event["Task Info"]["Host"])

    def _task_ends(self, event: Mapping[str, Any]) -> None:
        stage, about = self._stages[event["Stage ID"]], event["Task Info"]
        reason = event["Task End Reason"]["Reason"]
        if reason == SUCCESS:
            stage.task_s.append((about["Finish Time"] - about["Launch Time"]) / MS_PER_S)
            written = (event.get("Task Metrics") or {}).get("Shuffle Write Metrics") or {}
            stage.shuffle_bytes += written.get("Shuffle Bytes Written", 0)
        stage.failed += reason not in (SUCCESS, KILLED)
        stage.repeated += bool(about["Attempt"] or about["Speculative"] or event["Stage Attempt ID"])


_HANDLES = {
    "SparkListenerJobStart": EventLog._job_begins,
    "SparkListenerJobEnd": EventLog._job_ends,
    "SparkListenerStageSubmitted": EventLog._stage_begins,
    "SparkListenerStageCompleted": EventLog._stage_ends,
    "SparkListenerTaskStart": EventLog._task_begins,
    "SparkListenerTaskEnd": EventLog._task_ends,
}


def _length_s(spans: list[list[float]]) -> float | None:
    ends = [span[1] for span in spans if len(span) > 1]
    return max(ends) - min(span[0] for span in spans) if ends else None
