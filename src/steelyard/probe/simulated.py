"""Probe of the simulated cluster: how busy the planted servers of each node are, from its table `simulated_load`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from steelyard.model.sample import Metric, Sample
from steelyard.probe.base import Placement, Watched
from steelyard.probe.virtual_tables import Row, asking, samples

NAME: Final = "simulated"
WAY: Final = "simulated_load"
BUSY: Final = "busy_server_ns"
METRIC: Final = Metric(
    name="node_simulated_utilisation_percent",
    unit="percent",
    description="share of time that the node's planted servers were busy, of all of them",
    cumulative=True,
)
STATEMENT: Final = f"SELECT {BUSY}, servers FROM system_views.{WAY}"
NS_PER_S: Final = 1e9


class SimulatedProbe:
    """Probe that runs `steelyard-agent cql --every` for each simulated node."""

    name = NAME
    way = WAY
    metrics = (METRIC,)

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One connection to each simulated node. Raises ProbeError for another system."""
        return asking(NAME, WAY, watched, interval_s, ("--rate", BUSY, STATEMENT))

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """The sample of one answer; none of the first, which has no increase yet."""
        return samples(NAME, (_utilisation,), node, line)


def _utilisation(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    for row in rows:
        if row[BUSY] is not None:
            yield METRIC.name, 100.0 * row[BUSY] / (NS_PER_S * row["servers"])


def create() -> SimulatedProbe:
    """The probe; no side effects."""
    return SimulatedProbe()
