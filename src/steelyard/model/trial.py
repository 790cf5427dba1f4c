"""Trial record: the content of `trial.json` in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import ConfigDict, Field

from steelyard.model.activity import Activity, Disrupted
from steelyard.model.derived import Derived
from steelyard.model.file_format import FileFormat
from steelyard.model.load import MEASURE
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.named_level import Level
from steelyard.model.plausible import Moment
from steelyard.model.scaling import Scaling
from steelyard.model.search import Search
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.study import Limits
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value, later
from steelyard.model.verdict_reasons import Verdict


class Phase(StrEnum):
    """Phases of a trial, outermost first. lease, deploy, populate, server-warm-up, limit (processor limits are put in
    force), wipe and release happen once per start."""

    LEASE = "lease"
    DEPLOY = "deploy"
    POPULATE = "populate"
    SERVER_WARM_UP = "server-warm-up"
    LIMIT = "limit"
    SETTLE = "settle"
    IDLE = "idle"
    CAPACITY = "capacity"
    WARM_UP = "warm-up"
    MEASURE = "measure"
    READ_BACK = "read-back"
    DRAIN = "drain"
    COLLECT = "collect"
    SEAL = "seal"
    WIPE = "wipe"
    RELEASE = "release"


class PhaseTime(Value):
    """When a phase began and ended, seconds since the epoch; `left_s` is None if it did not end."""

    phase: Phase
    entered_s: Moment
    left_s: Moment | None = None


class Responses(Value):
    """Responses of a trial: its dependent variables. None if the trial has no such number.

    `steelyard.model.responses` defines them. Responses that code accesses by name are fields; any other is stored
    next to them under its name, and read with `of`.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | int | None] = Field(init=False)

    execution_time_ms: float | None = None
    operations: int = 0
    errors: int = 0
    unsent: int = 0
    not_found: int = 0
    throughput_per_s: float | None = None
    response_ms_mean: float | None = None
    response_ms_p50: float | None = None
    response_ms_p95: float | None = None
    response_ms_p99: float | None = None
    response_ms_max: float | None = None
    service_ms_mean: float | None = None
    service_ms_p50: float | None = None
    service_ms_p95: float | None = None
    service_ms_p99: float | None = None
    lag_ms_p99: float | None = None
    generator_cpu_us_per_operation: float | None = None

    def of(self, name: str) -> float | int | None:
        """The response with this name; None if the trial's record has none."""
        value: float | int | None = getattr(self, name, None)
        return value

    def has(self, name: str) -> bool:
        """Whether the record has a response with this name, even if it is None."""
        return name in type(self).model_fields or name in (self.__pydantic_extra__ or {})


class Capacity(Value):
    """Capacity of a cluster, as measured by a closed loop before the first trial that offers a fraction of it."""

    rate_per_s: float
    """Operations answered without error, per second of elapsed time."""
    threads: int
    """Operations in flight."""
    seconds: float
    operations: int
    errors: int
    service_ms_mean: float | None = None
    trial: str
    """Id of the trial before which it was measured; its intervals are stored there, as phase `capacity`."""
    measured_s: Moment
    """Time of the measurement, seconds since the epoch."""


class ClockOffset(Value):
    """Offset of a node's clock to the conductor's, around one trial."""

    node: str
    before_s: float
    """Seconds ahead before the trial: subtracted from every time that the node said during it."""
    after_s: float
    """Seconds ahead after the trial."""
    error_s: float
    """Half of the round trip of the worse measurement: each of them is right to within this."""

    @property
    def worst_s(self) -> float:
        """Bound of the error that is left in the corrected times."""
        return abs(self.after_s - self.before_s) + self.error_s


SLEW = 500e-6
"""How much faster or slower than time a clock may be made to run, to bring it near the right time: the kernel's limit
(adjtimex(2), 500 ppm). It is not a step."""


class ClockStep(Value):
    """How far the conductor's wall clock has moved against its monotonic one while a trial's load ran."""

    moved_s: float
    """Seconds that the wall clock has gained; negative if it was set back."""
    seconds: float
    """Time that the load took, by the monotonic clock."""

    @property
    def step_s(self) -> float:
        """The part that slewing cannot explain: the least by which the clock was set."""
        return max(0.0, abs(self.moved_s) - SLEW * self.seconds)


Attempt = tuple[str, int]
"""Trial id and number of the attempt."""
CellKey = tuple[tuple[str, Level], ...]
"""A treatment as a key: equal levels of the same factors make equal keys, in whatever order the factors are named."""


def cell_key(treatment: Mapping[str, Level]) -> CellKey:
    """The key of a treatment."""
    return tuple(sorted(treatment.items()))


def by_cell(records: Iterable[TrialRecord]) -> dict[CellKey, list[TrialRecord]]:
    """Records by their treatment; both in their order."""
    cells: dict[CellKey, list[TrialRecord]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    return cells


class TrialRecord(Value):
    """The sealed trial. Written as a draft, completed afterwards, then renamed into place."""

    format: FileFormat = 1
    id: str
    attempt: int = 1
    study: str
    treatment: dict[str, Level]
    hard: tuple[str, ...]
    settings: TrialSettings
    block: int
    planned_start: str
    start: str
    """The start of a cluster on which the trial actually ran: the unit of replication of hard-to-change factors."""
    start_replicate: int
    replicate: int
    position: int
    order_in_start: int
    """Position of this trial among those that the start has served, from 1."""
    seed: int
    machine_id: str = later("")
    """Id of the machine whose laboratory measured it; empty if it has none."""
    control: bool = False
    data: str = ""
    """How the tables came to their state: restored, filled, unchanged, continued, truncated."""
    limits: Limits = Limits()
    """Thresholds of the verdict."""
    begun_s: Moment
    """Seconds since the epoch."""
    ended_s: Moment | None = None
    phases: tuple[PhaseTime, ...] = ()
    verdict: Verdict = Verdict(outcome="unknown")
    responses: Responses = Responses()
    """Responses over all measured phases."""
    phase_responses: dict[str, Responses] = Field(default_factory=dict)
    """Responses of each phase by its name, if the load has several."""
    measures: dict[str, float] = Field(default_factory=dict)
    """Responses from samples and from activities, by name: those that the measured phases give."""
    covariates: dict[str, float] = Field(default_factory=dict)
    """Resources of the start, as numbers in addition to the factors: round-trip times, cores and memory of a database
    node."""
    moved_frames: MovedFrames | None = None
    """Frames that the link program moved while the load ran, by the clock, and their delay; None without one."""
    clocks: tuple[ClockOffset, ...] = ()
    """Offsets of the nodes whose clock is not the conductor's; empty if all share it."""
    clock_step: ClockStep | None = None
    """How far the conductor's wall clock moved against its monotonic one while the load ran; None if no load ran to
    its end."""
    capacity: Capacity | None = None
    """Capacity of the start that served the trial, if the load is a fraction of it."""
    offered_rate_per_s: float | None = None
    """Mean rate over the open phases; None for a closed loop, and where the rate follows only from a number of
    operations or a trace file."""
    search: Search | None = None
    """Windows and result of the search, if the load is one."""
    activities: tuple[Activity, ...] = later(())
    """Changes of the cluster's size during the trial, in order of time."""
    disruptions: tuple[Disrupted, ...] = later(())
    """Disruptions of its nodes, in order of time."""
    scaling: Scaling | None = later(None)
    """What the scaling policy saw and said; None without one."""
    derived: Derived | None = later(None)
    """The threshold of its policy, if other trials gave it."""
    server_warm_up: ServerWarmth | None = None
    """Warmth of the servers of the start before its first trial; None without server warm-up."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of steelyard, agent, system, python, kernel; SHA-256 of trace files."""
    shares: tuple[str, ...] = ()
    """Resources that the nodes of the site share: cpu, disk, clock, memory."""
    checksums: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of every other file of the trial, by path within its folder."""

    @property
    def key(self) -> Attempt:
        """Its trial's id and the number of the attempt: no other record of a study has both."""
        return self.id, self.attempt

    @property
    def cell(self) -> CellKey:
        """The key of its treatment."""
        return cell_key(self.treatment)

    @property
    def measured_phases(self) -> tuple[str, ...]:
        """Names of the phases of the load on which its responses rest."""
        load = self.settings.stated_load
        return (MEASURE,) if load is None else load.measured

    @property
    def measured_span(self) -> tuple[float, float] | None:
        """Begin and end of the measurement, seconds since the epoch: the phase `measure` without the warm-up at its
        beginning, and what is read back at its end. None if the phase was never entered or never left.

        A probe's reading at time t describes the interval that ends at t: the readings for the first second of the span
        are taken after its beginning."""
        measure = next((one for one in reversed(self.phases) if one.phase is Phase.MEASURE), None)
        if measure is None or measure.left_s is None:
            return None
        warm_ups = [one.left_s for one in self.phases if one.phase is Phase.WARM_UP and one.left_s is not None]
        begun_s = max([measure.entered_s, *(warm_s for warm_s in warm_ups if warm_s <= measure.left_s)])
        read_back = (one.entered_s for one in self.phases if one.phase is Phase.READ_BACK)
        return begun_s, min([measure.left_s, *read_back])
