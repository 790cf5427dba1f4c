"""Factory of a laboratory's parts from names and settings. Plug-ins are looked up when named, not at import."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.engine.base import Calibrated, Engine
from steelyard.format import listed
from steelyard.judging.noise_floor import Circumstances, FoundFloor
from steelyard.judging.verdict import NO_CALIBRATION
from steelyard.model.calibration import Calibration
from steelyard.model.errors import EngineError, SteelyardError
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import agent, calibration
from steelyard.node import noise_floor as noise
from steelyard.plugin import Plugins
from steelyard.plugin_factory import (
    make_engine,
    make_load_site,
    make_probe,
    make_site,
    make_system,
    make_workload,
)
from steelyard.probe.base import Probe
from steelyard.site.base import Site
from steelyard.system.base import System
from steelyard.workload.base import Workload


@dataclass(frozen=True)
class Known:
    """The calibration of the generator that drives a trial, or why there is none."""

    calibration: Calibration | None = None
    why: str = NO_CALIBRATION


def of_all_load_nodes(by_node: Mapping[str, Known]) -> Known:
    """What is known of the generators of all load nodes, by node: their calibration, or which of them have none."""
    without = {node: known for node, known in by_node.items() if known.calibration is None}
    if not without:
        return next(iter(by_node.values()), Known())
    why = next(iter(without.values())).why
    return Known(None, why if len(by_node) == 1 else f"{listed(list(without))}: {why}")


@dataclass(frozen=True)
class Parts:
    """Makes the parts that a trial's complete settings name. Tests hand in their own."""

    cache_folder: Path
    state_folder: Path
    plugins: Plugins = field(default_factory=Plugins)
    """Find what the study names."""
    wall_clock: Callable[[], float] = time.time
    """Seconds since the epoch, by a clock that may be set while a trial runs."""

    def site(self, settings: TrialSettings) -> Site:
        """The site of complete settings."""
        return make_site(self.plugins, settings, self.state_folder)

    def load_site(self, settings: TrialSettings) -> Site | None:
        """The site of the load nodes; None if the databases' site lends them."""
        return make_load_site(self.plugins, settings, self.state_folder)

    def system(self, settings: TrialSettings) -> System:
        """The system of complete settings."""
        return make_system(self.plugins, settings, self.cache_folder)

    def workload(self, settings: TrialSettings) -> Workload:
        """The workload of complete settings."""
        return make_workload(self.plugins, settings)

    def engine(self, settings: TrialSettings) -> Engine:
        """The engine of complete settings."""
        return make_engine(self.plugins, settings.engine)

    def calibration(self, engine: str, facts: Mapping[str, str]) -> Known:
        """What is known of the ceiling of an engine on a load node with these facts."""
        if not isinstance(make_engine(self.plugins, engine), Calibrated):
            return Known(None, f"only the laboratory's own load engine can be calibrated, not {engine}")
        try:
            known = calibration.read(calibration.path_in(self.state_folder))
        except SteelyardError as error:
            return Known(None, f"{error.message}: `steelyard calibrate`")
        if known is None:
            return Known(None, NO_CALIBRATION)
        try:
            why = calibration.stale(known, facts, calibration.fingerprint(agent.find()))
        except (OSError, EngineError) as error:
            why = str(error)
        return Known(None, f"{why}: `steelyard calibrate`") if why else Known(known)

    def noise_floor(self, of: Sequence[Circumstances]) -> FoundFloor:
        """The noise floor of this machine that holds for a study of these circumstances."""
        return noise.find(self.state_folder, of)

    def probe(self, name: str, settings: Mapping[str, Any]) -> Probe:
        """An instrument with its settings."""
        return make_probe(self.plugins, name, settings)
