"""From complete settings to plug-ins of the right type. Making one has no side effects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from steelyard.engine.base import Engine
from steelyard.model.study import Choice, SiteChoice
from steelyard.model.trial_settings import TrialSettings
from steelyard.plugin import Plugins
from steelyard.probe.base import Probe
from steelyard.site.base import Site
from steelyard.system.base import System
from steelyard.workload.base import Workload


def make_site(plugins: Plugins, settings: TrialSettings, state_folder: Path) -> Site:
    """The site of complete settings. Raises StudyError if there is none of that name."""
    module, own = _chosen(plugins, "site", settings, SiteChoice)
    site: Site = module.create(_with_files(plugins, module, "site", own), state_folder)
    return site


def make_system(plugins: Plugins, settings: TrialSettings, cache_folder: Path) -> System:
    """The system of complete settings. Raises StudyError if there is none of that name."""
    module, own = _chosen(plugins, "system", settings, Choice)
    system: System = module.create(own, cache_folder)
    return system


def make_workload(plugins: Plugins, settings: TrialSettings) -> Workload:
    """The workload of complete settings. Raises StudyError if there is none of that name."""
    module, own = _chosen(plugins, "workload", settings, Choice)
    workload: Workload = module.create(own)
    return workload


def make_engine(plugins: Plugins, name: str) -> Engine:
    """An engine by name. Raises StudyError if there is none."""
    engine: Engine = plugins.find("engine", name).create()
    return engine


NO_SETTINGS: Mapping[str, Any] = {}


def make_probe(plugins: Plugins, name: str, settings: Mapping[str, Any] = NO_SETTINGS) -> Probe:
    """A probe by name, with its settings from the study if it takes any. Raises StudyError if there is none."""
    module = plugins.find("probe", name)
    model: type[BaseModel] | None = getattr(module, "Settings", None)
    probe: Probe = module.create() if model is None else module.create(model.model_validate(dict(settings)))
    return probe


def _with_files(plugins: Plugins, module: ModuleType, seam: str, own: BaseModel) -> BaseModel:
    """Settings with the paths of the files that they name beside the study: those in the module's `FILES`, setting to
    what the file is. Raises StudyError if there is no such file."""
    names: dict[str, str] = getattr(module, "FILES", {})
    paths = {key: plugins.file(getattr(own, key), what, f"{seam}.{key}") for key, what in names.items()}
    return own.model_copy(update={key: str(path.absolute()) for key, path in paths.items()})


def _chosen(
    plugins: Plugins, seam: str, settings: TrialSettings, common: type[BaseModel]
) -> tuple[ModuleType, BaseModel]:
    """The module of a seam's plug-in, and its own settings: all of the section but the fields `common` to the seam."""
    section = settings.part(seam)[seam]
    module = plugins.find(seam, section["name"])
    model: type[BaseModel] = module.Settings
    return module, model.model_validate({key: item for key, item in section.items() if key not in common.model_fields})
