"""Power of a node from samples in watts, of whatever probe: which metrics make it up."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

UNIT: Final = "watts"
"""Unit of the metrics of a probe that measures power."""
ENDING: Final = "_watts"
"""End of their names."""
ANY: Final = f"*{ENDING}"
"""Represents all of them where metrics are listed."""
WHOLE: Final = ("node_power_watts", "machine_power_watts")
"""Power of the whole node or machine, as a meter between it and its supply reads it: nothing is added to it."""
METER: Final = "meter"
"""The probe whose readings are of all that a meter supplies, and not of parts of a machine."""
PACKAGES, MEMORY = "machine_package_power_watts", "machine_memory_power_watts"
"""Parts that a processor counts itself."""


def power_metrics(present: Collection[str]) -> tuple[str, ...]:
    """The metrics that make up a node's power, of those that it has: a meter's alone, otherwise the processor's own
    counts, otherwise all that are in watts. Memory without its processor is not the power of a machine."""
    for whole in WHOLE:
        if whole in present:
            return (whole,)
    if PACKAGES in present:
        return (PACKAGES, MEMORY) if MEMORY in present else (PACKAGES,)
    return tuple(sorted(name for name in present if name.endswith(ENDING) and name != MEMORY))
