"""Data of a trial in progress: records of the engine, readings of probes, changes of size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.judging.background_load import OwnTime
from steelyard.judging.trial_responses import joined, responses
from steelyard.lab.disrupting import DisruptionInProgress
from steelyard.lab.scaling import ScalingInProgress
from steelyard.lab.search import SearchInProgress
from steelyard.model.activity import Activity, Disrupted
from steelyard.model.derived import Derived
from steelyard.model.load import MEASURE, READ_AGAIN, READ_BACK, Load
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.sample import Sample
from steelyard.model.scaling import Scaling
from steelyard.model.search import SearchResult
from steelyard.model.trial import Capacity, ClockOffset, ClockStep, Phase, PhaseTime, Responses
from steelyard.wire.record import Done, Hello, Interval


@dataclass
class Course:
    """Data received so far from the trial in progress."""

    phases: tuple[str, ...] = (MEASURE,)
    """Names of the measured phases."""
    offered: Load | None = None
    """The load that was ordered, with its rates."""
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    ends: list[tuple[str, Done]] = field(default_factory=list)
    """Node and the end of each of its measured phases."""
    read_back: list[tuple[str, Done]] = field(default_factory=list)
    """Node and the end of each phase in which it read back what it had written."""
    traces: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files of traces, whose names alone are in the settings."""
    capacity: Capacity | None = None
    search: SearchInProgress | None = None
    threshold: Derived | None = None
    """Threshold of the policy, if other trials gave it."""
    scaling: ScalingInProgress | None = None
    """Changes of the cluster's size."""
    disrupting: DisruptionInProgress | None = None
    """Disruptions of its nodes."""
    hello: Hello | None = None
    probed: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    """Probe and node to their samples."""
    of_engine: list[Sample] = field(default_factory=list)
    """Samples that the engine took itself."""
    idle: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    """The same of the idle phase, of power alone."""
    own: OwnTime = field(default_factory=OwnTime)
    clocks: tuple[ClockOffset, ...] = ()
    clock_step: ClockStep | None = None
    load_begun_s: float | None = None
    """When driving began."""
    moved_frames: MovedFrames | None = None
    still_busy: Mapping[str, float] = field(default_factory=dict)
    data: str = ""

    @property
    def searched(self) -> SearchResult | None:
        """Result of the search."""
        return None if self.search is None else self.search.result

    @property
    def capacity_per_s(self) -> float | None:
        """The result of the search; None without one, or for a lower bound."""
        result = self.searched
        return result.rate_per_s if result is not None and result.outcome == "found" else None

    @property
    def activities(self) -> tuple[Activity, ...]:
        """Changes of the cluster's size."""
        return () if self.scaling is None else tuple(self.scaling.activities)

    @property
    def disruptions(self) -> tuple[Disrupted, ...]:
        """Disruptions of its nodes."""
        return () if self.disrupting is None else tuple(self.disrupting.activities)

    @property
    def scaled(self) -> Scaling | None:
        """Points and answers of the scaling policy."""
        return None if self.scaling is None else self.scaling.sealed

    @property
    def dones(self) -> dict[str, Done]:
        """The end of the measured phases, by load node."""
        return joined(self.ends)

    def measured(self) -> list[Interval]:
        """Intervals of the measured phases, of all load nodes."""
        return [interval for node in self.intervals.values() for interval in node if interval.phase in self.phases]

    def reading_back(self) -> list[Interval]:
        """Intervals in which rows were read back."""
        every = (interval for node in self.intervals.values() for interval in node)
        return [interval for interval in every if interval.phase in (READ_BACK, READ_AGAIN)]

    def read_back_phase(self, ended_s: float) -> list[PhaseTime]:
        """The phase in which they were, if any was."""
        first = self.reading_back()[:1]
        return [PhaseTime(phase=Phase.READ_BACK, entered_s=one.t_s, left_s=ended_s) for one in first]

    def wrong_rows(self) -> list[tuple[str, str, bytes]]:
        """Logs that name the first rows without what was acknowledged: load node, name of the log, text."""
        return [
            (node, f"{done.phase}.log", "".join(f"{text}\n" for _, text in done.texts).encode())
            for node, done in self.read_back
        ]

    @property
    def measuring(self) -> bool:
        """Whether an interval of a measured phase has come in."""
        return any(interval.phase in self.phases for node in self.intervals.values() for interval in node)

    def by_phase(self) -> dict[str, Responses]:
        """Responses of each measured phase, if there are several."""
        by_name = {}
        for name in self.phases if len(self.phases) > 1 else ():
            intervals = [interval for interval in self.measured() if interval.phase == name]
            by_name[name] = responses(intervals, [end for _, end in self.ends if end.phase == name])
        return by_name

    def samples(self, *, idle: bool = False) -> dict[str, list[Sample]]:
        """Samples of each node, of all probes and of the engine, in order of time; `idle`: with those of the idle
        phase."""
        nodes: dict[str, list[Sample]] = {}
        probed = (*self.probed.values(), *(self.idle.values() if idle else ()))
        for sample in (*(one for samples in probed for one in samples), *self.of_engine):
            nodes.setdefault(sample.node, []).append(sample)
        return {node: sorted(dict.fromkeys(samples), key=lambda one: one.t_s) for node, samples in nodes.items()}
