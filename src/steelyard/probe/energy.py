"""RAPL energy probe: energy of processor and memory from the counters of the kernel's powercap framework.

A machine without readable counters gives a count of 0 and no power. That is a reading, not a failure, so a study can
name the probe on every machine, and its report can say where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node.base import Node

POWERCAP = "/sys/class/powercap"
SCRIPT = """
before=
while :; do
  now="$(date +%s.%N)"
  for zone in "$1"/intel-rapl:*; do
    if [ -r "$zone/energy_uj" ] && read -r name < "$zone/name" && read -r energy < "$zone/energy_uj" &&
       read -r most < "$zone/max_energy_range_uj"; then
      now="$now ${zone##*/}/$name=$energy/$most"
    fi
  done 2> /dev/null
  [ -z "$before" ] || echo "$before | $now" || exit 0
  before="$now"
  sleep "$2" || exit 0
done
"""
"""Two readings per line, so that each line suffices for rates. The shell reads the files: one process per
reading."""
COUNTERS = "machine_energy_counters"
POWERS = {"package": "machine_package_power_watts", "dram": "machine_memory_power_watts"}
"""Prefix of a zone's name to its metric. Cores are part of their package."""
UJ_PER_J = 1e6


class EnergyProbe:
    """RAPL energy counters, read from `/sys/class/powercap`."""

    name = "energy"
    metrics = (
        Metric(
            name=COUNTERS,
            unit="counters",
            description="energy counters that could be read; 0: this machine has none, or they are unreadable",
        ),
        Metric(name=POWERS["package"], unit="watts", cumulative=True, description="power of all processor packages"),
        Metric(name=POWERS["dram"], unit="watts", cumulative=True, description="power of the memory, where it counts"),
    )

    def __init__(self, folder: str = POWERCAP) -> None:
        self._folder = folder

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        """argv of a shell that reads the counters once per interval."""
        return ["sh", "-c", SCRIPT, "energy", self._folder, f"{interval_s:g}"]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Mean power between the two readings on a line, corrected for counter overflow. Raises ProbeError on any other
        line."""
        try:
            before, after = (_reading(part) for part in line.decode().split(" | "))
        except ValueError as error:
            raise ProbeError(f"{node}: not a line of the energy probe: {line[:200]!r}") from error
        seconds = after[0] - before[0]
        if seconds <= 0:
            return []
        watts: dict[str, float] = {}
        counters = 0
        for zone, (energy, most) in after[1].items():
            metric = next((POWERS[kind] for kind in POWERS if zone.rpartition("/")[2].startswith(kind)), None)
            if metric is None or zone not in before[1]:
                continue
            grown = energy - before[1][zone][0]
            grown += most if grown < 0 else 0
            watts[metric] = watts.get(metric, 0.0) + grown / UJ_PER_J / seconds
            counters += 1
        samples = [Sample(after[0], node, COUNTERS, float(counters))]
        return [*samples, *(Sample(after[0], node, metric, value) for metric, value in watts.items())]


def _reading(text: str) -> tuple[float, Mapping[str, tuple[int, int]]]:
    """Time, and zone to (energy, range), both in microjoules."""
    time_s, *zones = text.split()
    counters_by_zone = {}
    for word in zones:
        zone, _, counts = word.partition("=")
        energy, _, most = counts.partition("/")
        counters_by_zone[zone] = (int(energy), int(most))
    return float(time_s), counters_by_zone


def create() -> EnergyProbe:
    """The probe; no side effects."""
    return EnergyProbe()
