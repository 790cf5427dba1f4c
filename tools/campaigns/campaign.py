"""Campaign, case and outcome: what a campaign is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

FINDINGS: Final[Mapping[str, str]] = {
    "traceback": "a traceback, or an error that was not foreseen",
    "silently-wrong": "a number changed, or a thing was counted twice, without a word",
    "leftover": "processes, namespaces, cgroups, mounts, leases or drafts are left behind",
    "lost": "a sealed trial is gone",
    "late": "it took longer than its limit",
    "unlike": "it ended otherwise than it should: another exit code, the file is not named",
    "outside": "a file was written that is neither in the store nor a named output",
    "disclosed": "a file beyond the store was told",
    "executed": "a program from the store was executed",
    "memory": "it took more memory than its limit",
    "campaign": "the campaign could not carry out the case",
}
"""Kind of finding to what it means."""


LIMITS_LIFTED: Final = """
[limits]
background_cpu_fraction = 1.0
steal_fraction = 1.0
generator_cpu_fraction = 1.0
generator_ceiling_fraction = 1.0
lag_p99_ms = 100000.0
probe_gap_s = 60.0
link_late_ms = 100000.0
link_stalled_fraction = 1.0
link_unread_fraction = 1.0
"""
"""End of a study file: what a busy machine does to a trial is no finding of a campaign."""


@dataclass(frozen=True)
class Case:
    """One harm to be tried."""

    name: str
    """Unique in its campaign, and the same in every version: outcomes are resumed by it."""
    stratum: str
    """The summary counts by it: a phase, a command, a kind of file."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the campaign needs to carry it out."""


@dataclass(frozen=True)
class Finding:
    """What was wrong about one case."""

    kind: str
    """One of `FINDINGS`."""
    text: str


@dataclass(frozen=True)
class Outcome:
    """What one case came to."""

    findings: Sequence[Finding] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was seen; values that JSON can hold."""


World = TypeVar("World")


class Campaign(Protocol[World]):
    """Harms of one sort, and how each is tried."""

    name: str
    about: str
    limit_s: float
    """The longest that one case may take."""

    def cases(self, seed: int) -> Sequence[Case]:
        """Every case, in order."""

    def world(self, folder: Path) -> AbstractContextManager[World]:
        """What all cases share, made in `folder`."""

    def run(self, world: World, case: Case, folder: Path) -> Outcome:
        """Carry out one case in an empty folder."""


@contextmanager
def no_world(folder: Path) -> Iterator[None]:
    """The world of a campaign whose cases share nothing."""
    del folder
    yield None
