"""Complete settings of a trial: typed fields where both halves know them, otherwise the text as written.

The original text is kept whole, because a trial's id hashes it: a plug-in's own settings pass through unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import ConfigDict, RootModel

from steelyard.model.disruption import DisruptionChoice
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load
from steelyard.model.named_level import Level
from steelyard.model.node_limits import NodeLimits
from steelyard.model.policy import PolicyChoice
from steelyard.model.study import Data, LoadSiteChoice, SiteChoice
from steelyard.model.value import Choice


class TrialSettings(RootModel[dict[str, Any]]):
    """Settings of one trial by section: site, system, workload, load, data, node, link, load_site, policy,
    disruption."""

    model_config = ConfigDict(frozen=True)

    @cached_property
    def site(self) -> SiteChoice:
        """The site, its nodes and its own settings."""
        return SiteChoice.model_validate(self._section("site"))

    @cached_property
    def system(self) -> Choice:
        """The system under test and its own settings."""
        return Choice.model_validate(self._section("system"))

    @cached_property
    def workload(self) -> Choice:
        """The workload and its own settings."""
        return Choice.model_validate(self._section("workload"))

    @cached_property
    def load(self) -> Load:
        """The offered load. Raises ValidationError if it is refused."""
        return Load.model_validate(self._section("load"))

    @property
    def stated_load(self) -> Load | None:
        """The load; None if the record has none."""
        return self.load if self.root.get("load") else None

    @cached_property
    def data(self) -> Data:
        """Data state at the beginning of the trial."""
        return Data.model_validate(self._section("data"))

    @cached_property
    def node(self) -> NodeLimits:
        """Limits of a database node."""
        return NodeLimits.model_validate(self._section("node"))

    @cached_property
    def link(self) -> LinkChoice:
        """Link between the nodes."""
        return LinkChoice.model_validate(self._section("link"))

    @cached_property
    def load_site(self) -> LoadSiteChoice:
        """The site of the load nodes; without a name, `site` lends them, too."""
        return LoadSiteChoice.model_validate(self._section("load_site"))

    @cached_property
    def policy(self) -> PolicyChoice:
        """The scaling policy; without a name the cluster keeps its size."""
        return PolicyChoice.model_validate(self._section("policy"))

    @cached_property
    def disruption(self) -> DisruptionChoice:
        """The disruption; without a name there is none."""
        return DisruptionChoice.model_validate(self._section("disruption"))

    @property
    def ends_start(self) -> bool:
        """Whether a trial ends its start, as it leaves another cluster than it was given."""
        return self.policy.changes or self.disruption.disrupts

    @property
    def most_nodes(self) -> int:
        """Number of database nodes that are lent: spares included. `site.nodes` is the size at the beginning."""
        return self.policy.lent(self.site.nodes)

    def check(self) -> None:
        """Raises ValidationError if a section with which readers compute is refused: sections are read on first use."""
        _ = self.site, self.node, self.stated_load, self.policy, self.disruption

    @property
    def load_nodes(self) -> int:
        """Number of nodes that drive load, whichever site lends them."""
        return self.load_site.nodes if self.load_site.name else self.site.load_nodes

    @property
    def engine(self) -> str:
        """Name of the engine; available even if the load as a whole cannot be read."""
        return str(self._section("load").get("engine", "agent"))

    @property
    def planted_contention(self) -> float | None:
        """Contention that the system plants by its setting of this name: it is then a model of a cluster, no database.
        None of all others."""
        planted = self.at("system.contention")
        return float(planted) if isinstance(planted, int | float) else None

    def part(self, *sections: str) -> dict[str, Any]:
        """Some sections as written, for their canonical text; without those that say nothing."""
        return {section: self.root[section] for section in sections if section in self.root}

    def without(self, section: str) -> dict[str, Any]:
        """All sections but one as written."""
        return {name: table for name, table in self.root.items() if name != section}

    def at(self, name: str) -> Level | None:
        """The level of a field by its dotted name, such as `system.heap_mb`; None if it is not set."""
        table: Any = self.root
        for key in name.split("."):
            if not isinstance(table, Mapping) or key not in table:
                return None
            table = table[key]
        return table if isinstance(table, str | int | float | bool) else None

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Every field by its dotted name, in the order written; lists are leaves."""
        yield from _leaves(self.root, "")

    def _section(self, name: str) -> dict[str, Any]:
        return dict(self.root.get(name) or {})


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
