"""Parts of the laboratory: the plug-ins of trials, calibration of their generators, this machine's noise floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.engine.base import Calibrated
from steelyard.format import listed
from steelyard.judging.noise_floor import Circumstances, FoundFloor
from steelyard.judging.verdict import NO_CALIBRATION
from steelyard.model.calibration import Calibration
from steelyard.model.errors import EngineError, SteelyardError
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import agent, calibration
from steelyard.node import noise_floor as noise
from steelyard.plugins.parts import Parts
from steelyard.system.base import System


@dataclass(frozen=True)
class CalibrationStatus:
    """The calibration of the generator that drives a trial, or why there is none."""

    calibration: Calibration | None = None
    why: str = NO_CALIBRATION


def of_all_load_nodes(by_node: Mapping[str, CalibrationStatus]) -> CalibrationStatus:
    """Calibration of the generators of all load nodes, from that of each node; or which of them have none."""
    without = {node: known for node, known in by_node.items() if known.calibration is None}
    if not without:
        return next(iter(by_node.values()), CalibrationStatus())
    why = next(iter(without.values())).why
    return CalibrationStatus(None, why if len(by_node) == 1 else f"{listed(list(without))}: {why}")


class LabParts(Parts):
    """The parts of a trial, and what this machine knows of itself. Tests hand in their own."""

    wall_clock: Callable[[], float] = staticmethod(time.time)
    """Seconds since the epoch, by a clock that may be set while a trial runs."""

    def system(self, settings: TrialSettings) -> System:
        """A system for one cluster."""
        return self.new_system(settings)

    def calibration(self, engine: str, protocol: str, facts: Mapping[str, str]) -> CalibrationStatus:
        """Calibration of an engine that speaks a protocol on a load node with these facts."""
        if not isinstance(self.engine_named(engine), Calibrated):
            return CalibrationStatus(None, f"only the laboratory's own load engine can be calibrated, not {engine}")
        try:
            known = calibration.read(calibration.path_in(self.state_folder, protocol))
        except SteelyardError as error:
            return CalibrationStatus(None, f"{error.message}: {calibration.command(protocol)}")
        if known is None:
            return CalibrationStatus(None, f"not calibrated, run {calibration.command(protocol)}")
        try:
            why = calibration.stale(known, facts, calibration.fingerprint(agent.find()))
        except (OSError, EngineError) as error:
            why = str(error)
        return CalibrationStatus(None, f"{why}: {calibration.command(protocol)}") if why else CalibrationStatus(known)

    def noise_floor(self, of: Sequence[Circumstances]) -> FoundFloor:
        """The noise floor of this machine that holds for a study of these circumstances."""
        return noise.find(self.state_folder, of)
