"""Disruption `noop`: begins and ends, and does nothing. What is found of it is found of any moment."""

from __future__ import annotations

import asyncio

from steelyard.disruption.base import Disruption, Stage
from steelyard.model.activity import BEGAN, HEALED
from steelyard.model.value import Value


class Settings(Value):
    """No settings."""


class Noop:
    """Does nothing."""

    name, takes_down, harmless = "noop", False, True

    async def hold(self, stage: Stage) -> None:
        """Wait."""
        for node in stage.nodes:
            stage.mark(node, BEGAN, None)
        await asyncio.sleep(stage.for_s)
        for node in stage.nodes:
            stage.mark(node, HEALED, None)


def create(settings: Settings) -> Disruption:
    """The disruption."""
    del settings
    return Noop()
