"""How the tables of richardson2017 hang together: which cells a regression was fitted to, which a ratio compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OVERALL = "overall"
SIZES = ("1", "2", "3", "4", "5", "6")


class CellKey(NamedTuple):
    """What a cell is about, in the words of the files."""

    workload: str
    platform: str
    ram_gb: str
    link: str
    cluster_size: str

    def words(self) -> str:
        """All but the workload, which a table has in common."""
        return " ".join(self[1:])


def key_of(row: Mapping[str, str]) -> CellKey:
    """The cell of a row of the summaries."""
    return CellKey(*(row[name] for name in CellKey._fields))


def compared(effect: str, workload: str, size: str) -> tuple[CellKey, CellKey]:
    """Baseline and treatment of a 0/1 effect or a ratio: virtual machine and Pi, or Ethernet and 802.11."""
    ethernet = CellKey(workload, "raspberry-pi-2", "1", "ethernet", size)
    if "vm" in effect:
        return CellKey(workload, "virtual-machine", "1", "nodal", size), ethernet
    return ethernet, ethernet._replace(link="802.11")


def fitted_to(row: Mapping[str, str]) -> list[tuple[float, CellKey]]:
    """The cells of a regression, each with its x."""
    workload, over, size = row["workload"], row["over"], row["cluster_size"]
    if over == "ram_gb":
        return [(float(ram), CellKey(workload, "virtual-machine", ram, "nodal", size)) for ram in ("1", "2", "4")]
    if over == "cluster_size":
        return [(float(nodes), CellKey(workload, "raspberry-pi-2", "1", row["link"], nodes)) for nodes in SIZES]
    return [(float(x), key) for x, key in enumerate(compared(over, workload, size))]
