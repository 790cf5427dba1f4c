"""Speed of database nodes within their limits, measured at the beginning and at the end of a start."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steelyard.model.value import Value


class Gauged(Value):
    """Limits that were asked for, and what each node was measured to have, under the names of section `node`."""

    moment: Literal["before", "after"]
    """before: the lease was new, and nothing ran; after: the system under test had been stopped and its data wiped."""
    asked: dict[str, float] = Field(default_factory=dict)
    """Limit to its number. Instead of `memory_mb`: with swap `memory_and_swap_mb`, of a node with its own kernel
    that has no more memory `machine_memory_mb`."""
    measured: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Node to what was measured: the limits, and `work_per_cpu_s`, the speed of a core: million rounds of
    `steelyard-agent gauge` per second of processor time."""
    problems: dict[str, str] = Field(default_factory=dict)
    """Node to the reason why something could not be measured on it."""
