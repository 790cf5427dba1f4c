"""Plug-ins of the right type from complete settings. To make one has no side effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel

from steelyard.disruption.base import Disruption
from steelyard.engine.base import Engine
from steelyard.judging.settings_hash import canonical
from steelyard.model.disruption import DisruptionChoice
from steelyard.model.study import LoadSiteChoice, SiteChoice
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Choice
from steelyard.node import folders
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.policy.base import Policy, policy_of
from steelyard.probe.base import Probe
from steelyard.site.base import Joins, Site
from steelyard.system.base import System
from steelyard.workload.base import Workload

Made = TypeVar("Made")
NO_SETTINGS: Mapping[str, Any] = {}


class Parts:
    """The plug-ins that complete settings name, each made once for its settings.

    Every method raises StudyError if there is no plug-in of that name.
    """

    def __init__(
        self, plugins: Plugins | None = None, *, cache_folder: Path | None = None, state_folder: Path | None = None
    ) -> None:
        """`plugins` finds the plug-ins that a study names; the folders are this user's by default."""
        self.plugins = plugins or Plugins()
        self.cache_folder = cache_folder or folders.cache_folder()
        self.state_folder = state_folder or folders.state_folder()
        self._made: dict[tuple[object, ...], Any] = {}

    def once(self, key: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """Result of `make` when first called for this key."""
        if key not in self._made:
            self._made[key] = make()
        part: Made = self._made[key]
        return part

    def site(self, settings: TrialSettings) -> Site:
        """The site of the databases."""
        return self.sites(settings)[0]

    def load_site(self, settings: TrialSettings) -> Site | None:
        """The site of the load nodes; None if the databases' site provides them."""
        return self.sites(settings)[1] if settings.load_site.name else None

    def sites(self, settings: TrialSettings) -> tuple[Site, ...]:
        """The site of the databases, then that of the load nodes, if it is another."""
        return self.once(("site", canonical(settings.part("site", "load_site"))), lambda: self._new_sites(settings))

    def system(self, settings: TrialSettings) -> System:
        """The system, to ask what it declares; see `new_system`."""
        return self.once(("system", canonical(settings.part("system"))), lambda: self.new_system(settings))

    def new_system(self, settings: TrialSettings) -> System:
        """A system for one cluster, whose state it keeps."""
        module, own = self._chosen("system", settings, Choice)
        system: System = module.create(own, self.cache_folder)
        return system

    def workload(self, settings: TrialSettings) -> Workload:
        """The workload."""

        def make() -> Workload:
            module, own = self._chosen("workload", settings, Choice)
            workload: Workload = module.create(self._with_files(module, "workload", own))
            return workload

        return self.once(("workload", canonical(settings.part("workload"))), make)

    def policy(self, settings: TrialSettings, threshold: float | None = None) -> Policy:
        """The scaling policy; `threshold`: a derived one."""
        name = settings.policy.name
        key = ("policy", canonical(settings.part("policy", "site", "load", "node")), threshold)
        return self.once(key, lambda: policy_of(settings, self.plugins.find("policy", name), threshold))

    def disruption(self, settings: TrialSettings) -> Disruption:
        """The disruption of a trial that has one."""

        def make() -> Disruption:
            module, own = self._chosen("disruption", settings, DisruptionChoice)
            disruption: Disruption = module.create(own)
            return disruption

        return self.once(("disruption", canonical(settings.part("disruption"))), make)

    def engine(self, settings: TrialSettings) -> Engine:
        """The engine that drives the load."""
        return self.engine_named(settings.engine)

    def engine_named(self, name: str) -> Engine:
        """An engine by name."""
        engine: Engine = self.once(("engine", name), lambda: self.plugins.find("engine", name).create())
        return engine

    def probe(self, name: str, settings: Mapping[str, Any] = NO_SETTINGS) -> Probe:
        """A probe by name, with its settings from the study if it takes any."""

        def make() -> Probe:
            module = self.plugins.find("probe", name)
            model: type[BaseModel] | None = getattr(module, "Settings", None)
            probe: Probe = module.create() if model is None else module.create(model.model_validate(dict(settings)))
            return probe

        return self.once(("probe", name, canonical(dict(settings))), make)

    def _new_sites(self, settings: TrialSettings) -> tuple[Site, ...]:
        if not settings.load_site.name:
            return (self._new_site("site", settings, SiteChoice),)
        # Nodes of two sites must reach each other.
        load_site = self._new_site("load_site", settings, LoadSiteChoice)
        sites = self._new_site("site", settings, SiteChoice), load_site
        return tuple(site.joined() if isinstance(site, Joins) else site for site in sites)

    def _new_site(self, section: str, settings: TrialSettings, common: type[BaseModel]) -> Site:
        module, own = self._chosen("site", settings, common, section)
        site: Site = module.create(self._with_files(module, section, own), self.state_folder)
        return site

    def _with_files(self, module: ModuleType, section: str, own: BaseModel) -> BaseModel:
        """Settings with the paths of the files that they name in the study's folder: those in the module's `FILES`,
        setting to what the file is. Raises StudyError if there is no such file."""
        names: dict[str, str] = getattr(module, "FILES", {})
        given = {key: name for key in names if (name := getattr(own, key))}
        paths = {key: self.plugins.file(name, names[key], f"{section}.{key}") for key, name in given.items()}
        if section == "workload":
            for path in paths.values():
                self.plugins.trust_program(section, path)
        return own.model_copy(update={key: str(path.absolute()) for key, path in paths.items()})

    def _chosen(
        self, seam: str, settings: TrialSettings, common: type[BaseModel], section: str = ""
    ) -> tuple[ModuleType, BaseModel]:
        """The module of a seam's plug-in, and its own settings: all of the section (default: the seam's) but the fields
        `common` to all plug-ins there."""
        table = settings.part(section or seam)[section or seam]
        module = self.plugins.find(seam, table["name"])
        model: type[BaseModel] = module.Settings
        own = {key: item for key, item in table.items() if key not in common.model_fields}
        return module, model.model_validate(own)


def default_plug_in(seam: str, name: str, **settings: Any) -> Any:
    """An engine, system or site by name as it is without a study, but for these settings. Raises StudyError if there is
    none, ValidationError for wrong settings, and if it has settings without a default."""
    module = find.find(seam, name)
    if seam == "engine":
        return module.create()
    return module.create(
        module.Settings(**settings), folders.cache_folder() if seam == "system" else folders.state_folder()
    )
