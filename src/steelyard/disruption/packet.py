"""Disruption `packet`: some packets between the targets and other members are lost, at random or beyond a rate, or all
are late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic import Field, model_validator

from steelyard.disruption import partition
from steelyard.disruption.base import Disruption, Stage
from steelyard.model.activity import BEGAN, HEALED
from steelyard.model.link import Lateness
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import later
from steelyard.node.tasks import together
from steelyard.site.base import DelaysPackets, Site
from steelyard.system.base import System


class Settings(partition.Settings):
    """Packets that are lost or late. A packet is what the kernel hands on at once: up to 64 KiB of a stream where nodes
    share a machine."""

    loss_percent: float = Field(default=0.0, ge=0, le=100)
    """Share of the packets that is lost at random."""
    rate_mbit: float = Field(default=0.0, ge=0, le=1e6)
    """Rate beyond which packets are lost, of each pair of nodes and direction; 0: none."""
    delay_ms: float = later(0.0, ge=0, le=60_000)
    """By how much packets are late, on top of the delay of the link, which our link program must move: site local, with
    `link.jitter_ms`, `link.duplex = "half"` or `link.medium = "802.11"`."""
    jitter_ms: float = later(0.0, ge=0, le=60_000)
    """The delay varies evenly by this much to either side. Packets from one node to another do not overtake each
    other."""

    @model_validator(mode="after")
    def _varies_by_less_than_it_is(self) -> Settings:
        if self.jitter_ms > self.delay_ms:
            raise ValueError(f"jitter_ms {self.jitter_ms:g} is more than delay_ms {self.delay_ms:g}")
        return self


class Packet(partition.Partition):
    """The filters of a partition, with a condition, and words to the link program. All members may be targets: then it
    is every link."""

    name = "packet"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._loss_percent, self._rate_mbit = settings.loss_percent, settings.rate_mbit
        self._late = Lateness(settings.delay_ms, settings.jitter_ms, settings.direction, 0.0)

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where nothing is lost or late, too."""
        if self._late.delay_ms:
            if not isinstance(site, DelaysPackets):
                return f"site {site.name} does not move packets itself; site local can"
            if why := site.undelayable(settings.link):
                return why
        elif not self._loses:
            return "no packet is lost or late: disruption.loss_percent, rate_mbit or delay_ms above 0"
        return super().refusal(settings, system, site) if self._loses else ""

    async def hold(self, stage: Stage) -> None:
        """Have agents drop packets, and the link program deliver them late."""
        tasks = [super().hold(stage)] if self._loses else []
        await together([*tasks, self._delayed(stage)] if self._late.delay_ms else tasks)

    @property
    def _loses(self) -> bool:
        return bool(self._loss_percent or self._rate_mbit)

    async def _delayed(self, stage: Stage) -> None:
        site: object = stage.site
        assert isinstance(site, DelaysPackets)
        others = [node for node in stage.members if node not in stage.nodes] or stage.members
        try:
            site.delay(stage.nodes, others, self._late._replace(for_s=stage.for_s))
            self._mark(stage, BEGAN)
            await asyncio.sleep(stage.for_s)
        finally:
            site.delay(stage.nodes, others, self._late)
        self._mark(stage, HEALED)

    def _mark(self, stage: Stage, name: str) -> None:
        """Where agents hold nothing that marks it, too."""
        for node in () if self._loses else stage.nodes:
            stage.mark(node, name, None)

    def peers(self, node: str, targets: Sequence[str], members: Sequence[str]) -> list[str]:
        """All that are no targets; if all are, all others. Pure."""
        others = [name for name in members if name not in targets]
        return others or [name for name in members if name != node]

    def which(self, *, whole: bool) -> list[str]:
        """The share and the rate, too. Pure."""
        rate = ["--rate-mbit", f"{self._rate_mbit:g}"] if self._rate_mbit else []
        return [*super().which(whole=whole), "--loss-percent", f"{self._loss_percent:g}", *rate]


def create(settings: Settings) -> Disruption:
    """The disruption."""
    return Packet(settings)
