"""Metrics of the store under the names that OpenMetrics wants: base units, spelt out, as the last word.

`machine_cpu_user_fraction` is `steelyard_machine_cpu_user_ratio`, `node_disk_read_bytes_per_s` is
`steelyard_node_disk_read_bytes_per_second`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "steelyard_"
PER_S: Final = re.compile(r"(?:^|_)([a-z]+)_per_s$")
UNITS: Final = {
    "fraction": ("ratio", 1.0),
    "percent": ("ratio", 0.01),
    "ns": ("seconds", 1e-9),
    "us": ("seconds", 1e-6),
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1.0),
    "kb": ("bytes", 1e3),
    "mb": ("bytes", 1e6),
    "mhz": ("hertz", 1e6),
    "hz": ("hertz", 1.0),
}
"""Last word of a metric to the base unit, and what its values are multiplied with."""
AS_THEY_ARE: Final = (
    "bytes", "seconds", "cores", "processes", "hits", "watts", "joules", "volts", "amperes", "celsius", "ratio",
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """A metric family: name, type, unit, what it is."""

    name: str
    kind: str
    unit: str
    about: str

    def head(self) -> str:
        """Its lines before the samples."""
        unit = f"# UNIT {self.name} {self.unit}\n" if self.unit else ""
        return f"# TYPE {self.name} {self.kind}\n{unit}# HELP {self.name} {self.about}\n"


def family_of(metric: str) -> tuple[Family, float]:
    """The family of a metric of the store, and what its values are multiplied with."""
    plain = word(metric)
    rate = PER_S.search(plain)
    before, _, last = plain.rpartition("_")
    unit, scale = "", 1.0
    name = plain
    if rate:
        unit = f"{rate[1]}_per_second"
        name = f"{plain.removesuffix('_s')}_second"
    elif last in UNITS and before:
        unit, scale = UNITS[last]
        name = f"{before}_{unit}"
    elif last in AS_THEY_ARE:
        unit = last
    return Family(f"{PREFIX}{name}", "gauge", unit, f"Readings of the metric {metric}."), scale


def word(text: str) -> str:
    """A text as a part of a name: letters, digits and underscores."""
    return re.sub(r"[^A-Za-z0-9_]", "_", text)
