"""Disruption `partition`: packets between the targets and the other members are lost. Clients reach all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.disruption.base import Disruption, Stage, by_agent
from steelyard.judging.disruptions import targets
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.site.base import CutsLinks, EntersNetworks, Site
from steelyard.system.base import System


class Settings(Value):
    """Packets that are lost."""

    direction: Literal["both", "to", "from"] = "both"
    """both: those between a target and the members that it is cut off from; to: those to targets; from: those from
    targets."""


class Partition:
    """Packet filters of agents in the targets' networks."""

    name, takes_down = "partition", False

    def __init__(self, settings: Settings) -> None:
        self._direction = settings.direction

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where links between nodes cannot be cut, and where none would be."""
        del system
        if not isinstance(site, CutsLinks):
            return f"site {site.name} cannot cut links between its nodes; sites local, docker and ssh can, as root"
        nodes = [f"n{number}" for number in range(1, settings.site.nodes + 1)]
        chosen = targets(settings.disruption, nodes, 0)
        if chosen and not self.peers(chosen[0], chosen, nodes):
            return "of all nodes a ring is left in which each sees a majority: fewer than 4 have no link to cut"
        return site.uncuttable()

    async def hold(self, stage: Stage) -> None:
        """Have agents drop the packets."""
        names, addresses = [node.name for node in stage.nodes], {node.name: node.address for node in stage.members}

        def words(node: Node) -> list[str]:
            peers = self.peers(node.name, names, list(addresses))
            named = [word for name in peers for word in ("--peer", addresses[name])]
            return [self.name, *self.which(whole=len(names) == len(addresses)), *named]

        site: object = stage.site
        if isinstance(site, EntersNetworks):
            stage = stage._replace(nodes=[site.in_network(node) for node in stage.nodes])
        await by_agent(stage, words, charged=False)

    def peers(self, node: str, targets: Sequence[str], members: Sequence[str]) -> list[str]:
        """The members that a target is cut off from: all that are no targets. If all are, a ring (Jepsen's
        majorities-ring): each keeps its links with the nearest ones on both sides, as few as a majority takes, so that
        every node sees a majority, and no two the same. Pure."""
        if len(targets) < len(members):
            return [name for name in members if name not in targets]
        whole, own = len(members), members.index(node)
        each_side = (whole // 2 + 1) // 2
        ways = ((name, (place - own) % whole) for place, name in enumerate(members))
        return [name for name, way in ways if min(way, whole - way) > each_side]

    def which(self, *, whole: bool) -> list[str]:
        """Options that say which packets; `whole`: all members are targets, so that each packet is to one. Pure."""
        return ["--direction", "to" if whole else self._direction]


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return Partition(settings)
