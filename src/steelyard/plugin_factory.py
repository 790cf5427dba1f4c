"""From complete settings to plug-ins of the right type. Making one has no side effects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from steelyard import plugin
from steelyard.engine.base import Engine
from steelyard.model.study import Choice, LoadSiteChoice, SiteChoice
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.folders import cache_folder, state_folder
from steelyard.plugin import Plugins
from steelyard.probe.base import Probe
from steelyard.site.base import Joins, Site
from steelyard.system.base import System
from steelyard.workload.base import Workload


def make_site(plugins: Plugins, settings: TrialSettings, state_folder: Path) -> Site:
    """The site of complete settings; that of the databases, if another one lends the load nodes. Raises StudyError if
    there is none of that name."""
    site = _site(plugins, "site", settings, SiteChoice, state_folder)
    return _joined(site) if settings.load_site.name else site


def make_load_site(plugins: Plugins, settings: TrialSettings, state_folder: Path) -> Site | None:
    """The site of the load nodes; None if the databases' site lends them. Raises StudyError if there is none of that
    name."""
    if not settings.load_site.name:
        return None
    return _joined(_site(plugins, "load_site", settings, LoadSiteChoice, state_folder))


def make_sites(plugins: Plugins, settings: TrialSettings, state_folder: Path) -> tuple[Site, ...]:
    """The site of the databases, then that of the load nodes, if it is another. Raises StudyError."""
    load_site = make_load_site(plugins, settings, state_folder)
    site = make_site(plugins, settings, state_folder)
    return (site,) if load_site is None else (site, load_site)


def _site(plugins: Plugins, section: str, settings: TrialSettings, common: type[BaseModel], state_folder: Path) -> Site:
    module, own = _chosen(plugins, "site", settings, common, section)
    site: Site = module.create(_with_files(plugins, module, section, own), state_folder)
    return site


def _joined(site: Site) -> Site:
    return site.joined() if isinstance(site, Joins) else site


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


def default_plug_in(seam: str, name: str) -> Any:
    """An engine, system or site by name, with its default settings. Raises StudyError if there is none, ValidationError
    if it has settings without a default."""
    module = plugin.find(seam, name)
    if seam == "engine":
        return module.create()
    return module.create(module.Settings(), cache_folder() if seam == "system" else state_folder())


NO_SETTINGS: Mapping[str, Any] = {}


def make_probe(plugins: Plugins, name: str, settings: Mapping[str, Any] = NO_SETTINGS) -> Probe:
    """A probe by name, with its settings from the study if it takes any. Raises StudyError if there is none."""
    module = plugins.find("probe", name)
    model: type[BaseModel] | None = getattr(module, "Settings", None)
    probe: Probe = module.create() if model is None else module.create(model.model_validate(dict(settings)))
    return probe


def _with_files(plugins: Plugins, module: ModuleType, section: str, own: BaseModel) -> BaseModel:
    """Settings with the paths of the files that they name beside the study: those in the module's `FILES`, setting to
    what the file is. Raises StudyError if there is no such file."""
    names: dict[str, str] = getattr(module, "FILES", {})
    paths = {key: plugins.file(getattr(own, key), what, f"{section}.{key}") for key, what in names.items()}
    return own.model_copy(update={key: str(path.absolute()) for key, path in paths.items()})


def _chosen(
    plugins: Plugins, seam: str, settings: TrialSettings, common: type[BaseModel], section: str = ""
) -> tuple[ModuleType, BaseModel]:
    """The module of a seam's plug-in, and its own settings: all of the section (default: the seam's) but the fields
    `common` to all plug-ins there."""
    table = settings.part(section or seam)[section or seam]
    module = plugins.find(seam, table["name"])
    model: type[BaseModel] = module.Settings
    return module, model.model_validate({key: item for key, item in table.items() if key not in common.model_fields})
