"""Disruption of a trial: its kind, its targets, its times, its own settings. Section `disruption` of a study."""

from __future__ import annotations

import re
from typing import Final

from pydantic import field_validator

from steelyard.model.value import Choice, later

NONE: Final = "none"
SETS: Final = ("one", "minority", "majority", "all")
"""Targets that are no names of nodes (Jepsen's words)."""
MOST: Final = 200
"""Disruptions of one trial: each is an activity in its record."""
_NAMES: Final = re.compile(r"n[1-9]\d*(,n[1-9]\d*)*")


class DisruptionChoice(Choice):
    """Disruption of database nodes while a trial is measured. Without a name there is none."""

    name: str = later(NONE)
    """none: nothing is disrupted; kill, pause, ...: see docs/howto/measure-a-failure.md. A factor over names compares
    them with a control that is not disrupted: each takes only its own settings of this section."""
    on: str = later("one")
    """Targets. one, minority (the most that leave a majority), majority, all: drawn from the trial's seed; or names of
    nodes: "n2", "n1,n3"."""
    at_s: float = later(30.0, ge=0, le=1e6)
    """Seconds of the measured phase at which it begins."""
    for_s: float = later(20.0, gt=0, le=3000)
    """Seconds until it ends and the nodes are healed."""
    every_s: float = later(0.0, ge=0, le=1e6)
    """Seconds from the beginning of one disruption to that of the next, 200 at most; 0: one per
    trial."""
    recover_s: float = later(60.0, gt=0, le=3600)
    """Limit for the targets to answer again once they are healed. Beyond it, the trial is a fault of the system."""

    @field_validator("on")
    @classmethod
    def _are_targets(cls, value: str) -> str:
        if value not in SETS and not _NAMES.fullmatch(value):
            raise ValueError(f'targets are {", ".join(SETS)}, or names of nodes such as "n1,n3", not {value!r}')
        return value

    @property
    def disrupts(self) -> bool:
        """Whether anything is done."""
        return self.name != NONE

    @property
    def words(self) -> str:
        """What is done: `kill of one for 20 s`."""
        return f"{self.name} of {self.on} for {self.for_s:g} s"

    @property
    def whole_s(self) -> float:
        """Longest time from the beginning of one disruption until its nodes have recovered."""
        return self.for_s + self.recover_s

    def begins_s(self, measured_s: float) -> tuple[float, ...]:
        """Seconds of the measured phase at which a disruption begins and can still be recovered from within it."""
        if not self.every_s:
            return (self.at_s,)
        times = max(0.0, measured_s - self.whole_s - self.at_s) // self.every_s + 1
        return tuple(self.at_s + place * self.every_s for place in range(int(min(times, MOST))))
