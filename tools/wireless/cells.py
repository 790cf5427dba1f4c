"""Cells of the page on wireless: a medium with n saturated stations beside its model, simulated by the agent."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.node import agent
from tools.wireless.bianchi import Model, model_b, model_g, model_g_rts, model_n

LONGEST_S = 300.0
"""Deadline of one simulation, in real time."""
SEED = 1


@dataclass(frozen=True)
class Medium:
    """A medium with the arguments that make it, its model, and for how many stations and how long it is simulated."""

    name: str
    arguments: tuple[str, ...]
    model: Model
    stations: tuple[int, ...]
    seconds: int
    """Virtual."""


MANY = (1, 2, 3, 5, 10, 20, 50)
FEW = (1, 2, 3, 6, 10)
N_65 = ("--phy", "802.11n-65", "--ack-rate", "24", "--aggregate")
G_54 = ("--phy", "802.11g-54", "--ack-rate", "24")

MEDIA = (
    Medium("802.11g 54 Mb/s, ACK at 24", G_54, model_g(54, 24), MANY, 300),
    Medium("802.11g 6 Mb/s, ACK at 6", ("--phy", "802.11g-6", "--ack-rate", "6"), model_g(6, 6), MANY, 400),
    Medium(
        "802.11b 11 Mb/s, long preamble, ACK at 2", ("--phy", "802.11b-11", "--ack-rate", "2"), model_b(), MANY, 400
    ),
    Medium("802.11g 54 Mb/s with RTS/CTS, both at 24", (*G_54, "--rts"), model_g_rts(54, 24), MANY, 300),
)
"""Held against the EIFS variant with the correction of 2005."""
AGGREGATES = tuple(
    Medium(f"802.11n 65 Mb/s, K = {aggregate}", (*N_65, str(aggregate)), model_n(aggregate), FEW, 300)
    for aggregate in (1, 4, 16, 28)
)
"""Held against the EIFS variant without the correction."""


@functools.cache
def simulated(*arguments: str) -> dict[str, Any]:
    """What `steelyard-agent link --simulate` says; the same for the same arguments."""
    argv = [str(agent.find()), "link", "--simulate", "--json", "--seed", str(SEED), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=LONGEST_S)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def throughput_mbit(medium: Medium, stations: int, retry_limit: str = "off") -> float:
    """Payload per second of all stations of a medium."""
    return float(
        simulated(
            *medium.arguments,
            *("--stations", str(stations), "--seconds", str(medium.seconds), "--retry-limit", retry_limit),
        )["throughput_mbit_per_s"]
    )


def differences(media: Sequence[Medium]) -> list[float]:
    """Simulated over model, less 1, of every cell."""
    return [
        throughput_mbit(medium, stations) / medium.model.throughput_mbit(stations) - 1
        for medium in media
        for stations in medium.stations
    ]
