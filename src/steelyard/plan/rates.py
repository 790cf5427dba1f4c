"""Seconds of each phase, before anything was measured here: rules of thumb, and the history that corrects them.

The rules come from readings on a 2-core machine (a Cassandra node takes about 10 CPU seconds to start; 3 nodes were up
in 22 s, 6 in 34 s). They are wrong elsewhere by a factor, which is what history finds: the median of observed over
expected seconds of each phase.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from steelyard import plugin
from steelyard.model.base import Value
from steelyard.model.trial import Phase, TrialRecord
from steelyard.study.fields import SECTIONS
from steelyard.study.settings import canonical

Settings = Mapping[str, Any]

DEFAULT_MIX = {"read": 1.0}
DEFAULT_SERVICE_MS = {"read": 0.8, "update": 0.7, "insert": 0.7, "scan": 6.0, "read_modify_write": 1.5}
SIMULATED_SERVICE_US = 500.0
MOST_RATE_PER_CORE = 3_000.0
"""Operations per second and core, client and servers together."""
GOSSIP_S = 5.0
NODE_START_CPU_S = 10.0
LEASE_S = 1.0
RELEASE_S = 3.0
POPULATE_RATE_PER_CORE = 2_500.0
FREEZE_S = 4.0
THAW_S = 2.0
SETTLE_S = 1.0
COLLECT_S = 2.0
SIMULATED_START_S = 1.0
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
    order = workload.order()
    mix = {name: float(share) for name, share in order.get("proportions", {}).items() if share > 0}
    fields = len(workload.schema().fields)
    return Shape(
        records=int(order.get("records", 0)),
        record_bytes=fields * int(order.get("field_length", 0)),
        mix=mix or DEFAULT_MIX,
    )


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


def start_phases(settings: Settings, shape: Shape, cores: int, *, golden: bool) -> dict[Phase, float]:
    """Expected seconds of the phases of a start. `golden`: the filled state is kept from an earlier start."""
    simulated = settings["system"]["name"] == "simulated"
    nodes = settings["site"]["nodes"]
    populate = THAW_S if golden else shape.records / (POPULATE_RATE_PER_CORE * cores) + FREEZE_S
    return {
        Phase.LEASE: LEASE_S,
        Phase.DEPLOY: SIMULATED_START_S if simulated else GOSSIP_S + NODE_START_CPU_S * nodes / cores,
        Phase.POPULATE: min(populate, 1.0) if simulated else populate,
        Phase.WIPE: RELEASE_S / 2,
        Phase.RELEASE: RELEASE_S / 2,
    }


def trial_phases(settings: Settings, shape: Shape, cores: int) -> dict[Phase, float]:
    """Expected seconds of the phases of a trial."""
    simulated = settings["system"]["name"] == "simulated"
    thaws = settings["data"]["state"] != "continue" and shape.writes > 0 and not simulated
    return {
        Phase.SETTLE: (0.0 if simulated else SETTLE_S) + (THAW_S if thaws else 0.0),
        Phase.MEASURE: settings["load"]["warm_up_s"] + measured_s(settings, shape, cores),
        Phase.COLLECT: COLLECT_S,
    }


def measured_s(settings: Settings, shape: Shape, cores: int) -> float:
    """Expected seconds of the measured phase: whichever of operations and duration ends first."""
    load, system = settings["load"], settings["system"]
    if system["name"] == "simulated":
        service_ms = system.get("service_us", SIMULATED_SERVICE_US) / 1000.0
        cap = settings["site"]["nodes"] * 1000.0 / service_ms
    else:
        service_ms = sum(share * DEFAULT_SERVICE_MS.get(name, 1.0) for name, share in shape.mix.items())
        cap = MOST_RATE_PER_CORE * cores * DEFAULT_SERVICE_MS["read"] / max(service_ms, DEFAULT_SERVICE_MS["read"])
    rate_per_s = load["rate_per_s"] or min(load["threads"] * 1000.0 / service_ms, cap)
    by_count = load["operations"] / rate_per_s if load["operations"] else float("inf")
    return float(min(by_count, load["duration_s"] or float("inf")))


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
        shape = shapes.of(record.settings)
        spent = observed(record)
        populated_fast = spent.get(Phase.POPULATE, 0.0) < FREEZE_S
        expected = start_phases(record.settings, shape, cores, golden=populated_fast)
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
