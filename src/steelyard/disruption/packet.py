"""Disruption `packet`: some packets between the targets and other members are lost, at random or beyond a rate."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from steelyard.disruption import partition
from steelyard.disruption.base import Disruption
from steelyard.model.trial_settings import TrialSettings
from steelyard.site.base import Site
from steelyard.system.base import System


class Settings(partition.Settings):
    """Packets that are lost. A packet is what the kernel hands on at once: up to 64 KiB of a stream where nodes share a
    machine."""

    loss_percent: float = Field(default=0.0, ge=0, le=100)
    """Share of the packets that is lost at random."""
    rate_mbit: float = Field(default=0.0, ge=0, le=1e6)
    """Rate beyond which packets are lost, of each pair of nodes and direction; 0: none."""


class Packet(partition.Partition):
    """The filters of a partition, with a condition. All members may be targets: then it is every link."""

    name = "packet"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._loss_percent, self._rate_mbit = settings.loss_percent, settings.rate_mbit

    def refusal(self, settings: TrialSettings, system: System, site: Site) -> str:
        """Where nothing is lost, too."""
        if not self._loss_percent and not self._rate_mbit:
            return "no packet is lost: disruption.loss_percent, or disruption.rate_mbit, above 0"
        return super().refusal(settings, system, site)

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
