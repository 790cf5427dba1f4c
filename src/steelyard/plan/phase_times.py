"""Seconds of each phase, before anything was measured here: rules of thumb, and the history that corrects them.

The rules come from readings on a quiet 2-core machine: 1 Cassandra node was ready in 3.3 s, 3 in 11 to 13 s, 6 in 29 s;
5,000 records of 1 kB were filled in 2 s; 600 operations of one thread took 0.3 s (YCSB A, C, I) and 0.6 to 1 s (E) on 1
node, 0.75 to 0.95 s and 3.3 s on 3. They are wrong elsewhere by a factor, which is what history finds: the median of
observed over expected seconds of each phase.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from steelyard import plugin
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.trial import Phase, TrialRecord
from steelyard.model.value import Value
from steelyard.study.fields import SECTIONS
from steelyard.study.settings import canonical
from steelyard.workload.base import Explains, Explanation

Settings = Mapping[str, Any]

DEFAULT_MIX = {"read": 1.0}
DEFAULT_SERVICE_MS = {"read": 0.48, "update": 0.52, "insert": 0.43, "scan": 1.5, "read_modify_write": 1.0}
"""On one node that has the machine to itself."""
REMOTE_COST = 1.5
"""What an operation costs more, over its service time, when the node that is asked must ask another one."""
SIMULATED_SERVICE_US = 500.0
MOST_RATE_PER_CORE = 3_000.0
"""Operations per second and core, client and servers together."""
NODE_START_S = 3.3
JOIN_S = 3.5
"""What each further node adds to a start besides its processor time: nodes wait for each other."""
SIMULATED_START_S = 0.3
LEASE_S = 0.1
SCHEMA_S = 0.4
FILL_COLD_S = 1.0
"""What filling takes longer because the servers have just started."""
FILL_RATE_PER_CORE = 2_500.0
SNAPSHOT_S = 0.5
RESTORE_S = 0.4
"""Also for emptying a table, which is most of it."""
SETTLE_S = 0.1
DRAIN_S = 0.6
COLLECT_S = 0.1
WIPE_S = 0.2
RELEASE_S = 0.2
TRACE_S = 60.0
"""Where nothing but the file of a trace says how long a trial lasts."""
MIN_OBSERVED_S = 0.05
"""Shorter phases say nothing about a rate."""


class Shape(Value):
    """What a workload does, as far as time and space depend on it."""

    records: int = 0
    record_bytes: int = 0
    mix: dict[str, float] = DEFAULT_MIX

    @property
    def writes(self) -> float:
        """Fraction of operations that write."""
        return sum(share for operation, share in self.mix.items() if operation not in ("read", "scan"))

    @property
    def inserts(self) -> float:
        """Fraction of operations that add a record."""
        return self.mix.get("insert", 0.0)


def plugin_of(seam: str, settings: Settings, *more: Path) -> Any:
    """The plug-in object of a seam under complete settings; making one has no side effects."""
    module = plugin.find(seam, settings[seam]["name"])
    own = {key: item for key, item in settings[seam].items() if key not in SECTIONS[seam].model_fields}
    return module.create(module.Settings.model_validate(own), *more)


def shape_of(settings: Settings) -> Shape:
    """Shape of the workload: records, bytes of one, shares of operations."""
    workload = plugin_of("workload", settings)
    if isinstance(workload, Explains):
        return explained(workload.explain())
    order = workload.order()
    mix = {name: float(share) for name, share in order.get("proportions", {}).items() if share > 0}
    fields = len(workload.schema().fields)
    return Shape(
        records=int(order.get("records", 0)),
        record_bytes=fields * int(order.get("field_length", 0)),
        mix=mix or DEFAULT_MIX,
    )


def explained(told: Explanation) -> Shape:
    """Shape of a workload that says what it does: each operation costs what the like of YCSB's costs."""
    mix: dict[str, float] = {}
    for operation in told.operations:
        mix[operation.kind] = mix.get(operation.kind, 0.0) + operation.share
    return Shape(records=told.records, record_bytes=told.record_bytes, mix=mix or DEFAULT_MIX)


class Shapes:
    """Shapes by complete settings of the workload, each made once."""

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def of(self, settings: Settings) -> Shape:
        """Shape of the workload of complete settings."""
        key = canonical(settings["workload"])
        if key not in self._known:
            self._known[key] = shape_of(settings)
        return self._known[key]


def start_phases(settings: Settings, shape: Shape, cores: int, *, has_snapshot: bool) -> dict[Phase, float]:
    """Expected seconds of the phases of a start. `has_snapshot`: of the filled state, from an earlier start; a start
    that fills it and takes one is wiped and started again on it."""
    simulated = settings["system"]["name"] == "simulated"
    deploy_s = SIMULATED_START_S if simulated else _cassandra_start_s(settings["site"]["nodes"], cores)
    populate_s = SCHEMA_S
    starts = 1
    match settings["data"]["state"]:
        case "reload":
            populate_s += _fill_s(shape, cores)
        case "restore" | "continue" if has_snapshot or simulated:
            populate_s += RESTORE_S
        case "restore" | "continue":
            populate_s += _fill_s(shape, cores) + SNAPSHOT_S + SCHEMA_S + RESTORE_S
            starts = 2
    return {
        Phase.LEASE: LEASE_S,
        Phase.DEPLOY: deploy_s * starts,
        Phase.POPULATE: min(populate_s, 1.0) if simulated else populate_s,
        Phase.WIPE: WIPE_S * starts,
        Phase.RELEASE: RELEASE_S,
    }


def _cassandra_start_s(nodes: int, cores: int) -> float:
    return NODE_START_S * max(1.0, nodes / cores) + JOIN_S * (nodes - 1)


def _fill_s(shape: Shape, cores: int) -> float:
    return FILL_COLD_S + shape.records / (FILL_RATE_PER_CORE * cores)


def trial_phases(settings: Settings, shape: Shape, cores: int) -> dict[Phase, float]:
    """Expected seconds of the phases of a trial."""
    simulated = settings["system"]["name"] == "simulated"
    return {
        Phase.SETTLE: 0.0 if simulated else SETTLE_S + _restore_s(settings["data"]["state"], shape, cores),
        Phase.MEASURE: settings["load"]["warm_up_s"] + measured_s(settings, shape, cores),
        Phase.DRAIN: DRAIN_S,
        Phase.COLLECT: COLLECT_S,
    }


def _restore_s(state: str, shape: Shape, cores: int) -> float:
    """Bringing the data to what a trial starts from."""
    match state:
        case "reload":
            return _fill_s(shape, cores)
        case "truncate":
            return RESTORE_S
        case "restore" if shape.writes > 0:
            return RESTORE_S
    return 0.0


def service_ms(settings: Settings, shape: Shape, cores: int) -> float:
    """Expected service time of an operation on a cluster that has little to do."""
    system, nodes = settings["system"], int(settings["site"]["nodes"])
    if system["name"] == "simulated":
        return float(system.get("service_us", SIMULATED_SERVICE_US)) / 1000.0
    # Nodes share the machine's cores.
    return _alone_ms(shape) * _work(nodes) * max(1.0, nodes / cores)


def most_per_s(settings: Settings, shape: Shape, cores: int) -> float:
    """Operations a second that a cluster can be expected to carry, whatever is in flight."""
    nodes = int(settings["site"]["nodes"])
    if settings["system"]["name"] == "simulated":
        return nodes * 1000.0 / service_ms(settings, shape, cores)
    read_ms = DEFAULT_SERVICE_MS["read"]
    return MOST_RATE_PER_CORE * cores * read_ms / (max(_alone_ms(shape), read_ms) * _work(nodes))


def _alone_ms(shape: Shape) -> float:
    return sum(share * DEFAULT_SERVICE_MS.get(name, 1.0) for name, share in shape.mix.items())


def _work(nodes: int) -> float:
    """One node of n has the row."""
    return 1.0 + REMOTE_COST * (1.0 - 1.0 / nodes)


def measured_s(settings: Settings, shape: Shape, cores: int) -> float:
    """Expected seconds of the measured phases: whichever of operations and duration ends first. How long the file of a
    trace lasts is not looked up."""
    load = Load.model_validate(settings["load"])
    lasts_s = load.measured_s if load.measured_s is not None else math.inf
    if load.operations is not None:
        most = most_per_s(settings, shape, cores)
        closed = min(load.threads * 1000.0 / service_ms(settings, shape, cores), most)
        rate_per_s = (load.capacity_fraction or 0.0) * most or load.peak_per_s() or closed
        lasts_s = min(lasts_s, load.operations / rate_per_s)
    return lasts_s if math.isfinite(lasts_s) else TRACE_S


def capacity_key(settings: Settings) -> str | None:
    """Trials of one start with the same key share one measurement of capacity; None if they need none."""
    load = Load.model_validate(settings["load"])
    if not load.wants_capacity:
        return None
    return canonical({"workload": settings["workload"], "threads": load.capacity_threads, "seconds": load.capacity_s})


def capacity_s(settings: Settings) -> float:
    """Seconds of a measurement of capacity, with its warm-up."""
    load = Load.model_validate(settings["load"])
    return load.warm_up_s + load.capacity_s + DRAIN_S


def observed(record: TrialRecord) -> dict[Phase, float]:
    """Seconds that a trial spent in each phase."""
    spent: dict[Phase, float] = {}
    for time in record.phases:
        if time.left_s is not None:
            spent[time.phase] = spent.get(time.phase, 0.0) + time.left_s - time.entered_s
    return spent


class Corrections(Value):
    """What history says about the rules: observed over expected, and measured seconds of treatments seen before."""

    factor: dict[Phase, float] = Field(default_factory=dict)
    measured_s: dict[str, float] = Field(default_factory=dict)
    """Settings' hash -> median seconds of the measured phase."""
    trials: int = 0

    def of(self, phase: Phase) -> float:
        """Factor of a phase, 1 where nothing was observed."""
        return self.factor.get(phase, 1.0)


def corrections(history: Sequence[TrialRecord], shapes: Shapes, cores: int) -> Corrections:
    """What the valid trials of a store say about the rules of thumb."""
    ratios: dict[Phase, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    valid = [record for record in history if record.verdict.outcome == "valid"]
    for record in valid:
        try:
            shape = shapes.of(record.settings)
        except (StudyError, ValidationError):
            continue  # of a workload's file that has been edited or moved since
        spent = observed(record)
        # Before a trial, only a start that had to be filled is wiped; the wipe at its end is in no record.
        filled = spent.pop(Phase.WIPE, None) is not None
        expected = start_phases(record.settings, shape, cores, has_snapshot=not filled)
        expected |= trial_phases(record.settings, shape, cores)
        for phase, second in spent.items():
            if expected.get(phase, 0.0) > 0 and second >= MIN_OBSERVED_S:
                ratios.setdefault(phase, []).append(second / expected[phase])
        if Phase.MEASURE in spent:
            seconds.setdefault(treatment_hash(record.id), []).append(spent[Phase.MEASURE])
    return Corrections(
        factor={phase: statistics.median(found) for phase, found in ratios.items()},
        measured_s={key: statistics.median(found) for key, found in seconds.items()},
        trials=len(valid),
    )


def treatment_hash(trial_id: str) -> str:
    """The part of a trial's id that stands for its complete settings."""
    return trial_id.partition("-")[0]
