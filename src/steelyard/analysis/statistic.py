"""What a statistic is: a table of the results, with the way to compute it, to call it, to place it, to say it.

A module of `steelyard.analysis.statistics` defines one as `STATISTIC`; nothing else is needed for a new one. Report,
command line, exports and the reference have it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

import numpy as np
import polars as pl

from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.frame import TrialFrame, size_factor
from steelyard.analysis.row import Row
from steelyard.analysis.treatments import Treatment
from steelyard.judging.stopping_rule import Decision
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord

AnyRow = TypeVar("AnyRow", bound=Row)
Attempt = tuple[str, int]
"""Id of a trial, and which attempt of it."""
LAST: Final = 1000


class Section(StrEnum):
    """A section of the report, in the order of the page; the value is its anchor there."""

    ANSWER = "answer"
    SIZE = "size"
    INTERACTIONS = "interactions"
    SPREAD = "spread"
    EVERY_CELL = "every-cell"
    RESPONSE_TIME = "response-time"
    WITHIN = "within"
    ENERGY = "energy"
    VALIDITY = "validity"
    EVERY_TRIAL = "every-trial"


@dataclass(frozen=True)
class Use:
    """What a trial used."""

    nodes: int
    """Nodes that count."""
    busy: float | None = None
    """Mean share of their cores that was busy, from 0 to 1; None where nobody read it."""
    measured_watts: float | None = None
    """Mean power of all machines, by their counters."""
    why_not: str = ""
    """Why there is no measured power; empty where nobody asked for it."""


@dataclass(frozen=True)
class Seconds:
    """The seconds of the used trials of one treatment."""

    treatment: Treatment
    trials: Sequence[tuple[Attempt, pl.DataFrame]]
    """A row per second of the measured phases: `response_ms_mean`, `throughput_per_s`."""


@dataclass(frozen=True)
class Within:
    """What the store has of the inside of the used trials, read before the analysis: it is handed frames, no store."""

    seconds: Sequence[Seconds] = ()
    percentiles: Sequence[Row] = ()
    """Rows of the statistic `percentile`, which are computed while the histograms are read."""
    uses: Mapping[Attempt, Use] = field(default_factory=dict)
    """What every attempt used; empty where neither cost nor energy is asked for."""


class Context:
    """What statistics are computed from: the trials, the study, and each other."""

    def __init__(
        self, frame: TrialFrame, study: Study, *, seed: int, statistics: Sequence[Statistic[Any]] = (),
        records: Sequence[TrialRecord] = (), floors: Floors | None = None, decision: Decision | None = None,
        within: Within | None = None,
    ) -> None:  # fmt: skip
        """`statistics`: those that may be asked for with `of`. `within`: None where nothing within trials was read."""
        self.frame, self.study, self.records, self.seed = frame, study, records, seed
        self.floors, self.decision, self.within = floors or Floors(), decision, within or Within()
        self._statistics = {statistic.row: statistic for statistic in statistics}
        self._computed: dict[type[Row], tuple[Row, ...] | None] = {}

    @property
    def response(self) -> str:
        """The main response."""
        return self.study.analysis.response

    @property
    def confidence(self) -> float:
        """Of every interval."""
        return self.study.analysis.confidence

    @property
    def size(self) -> str | None:
        """The factor of sizes."""
        return size_factor(self.frame)

    @property
    def is_open(self) -> bool:
        """Whether the load, or some level of it, is an open loop: then its schedule sets the throughput."""
        return self.study.load.is_open or "load.schedule" in self.frame.factors

    def generator(self) -> np.random.Generator:
        """Random numbers of a statistic: each begins with the same seed, so none changes another's."""
        return np.random.default_rng(self.seed)

    def of(self, row: type[AnyRow]) -> tuple[AnyRow, ...]:
        """The rows of a statistic, computed when they are asked for first.

        Raises KeyError if no statistic has such rows, RuntimeError if statistics need each other in a circle.
        """
        if row not in self._computed:
            self._computed[row] = None
            self._computed[row] = tuple(self._statistics[row].compute(self))
        computed = self._computed[row]
        if computed is None:
            raise RuntimeError(f"statistic {self._statistics[row].name} needs its own rows")
        return tuple(one for one in computed if isinstance(one, row))


@dataclass(frozen=True)
class Statistic(Generic[AnyRow]):
    """One table of the results."""

    name: str
    """Of the table in `--json` and of its CSV file; the module is called the same."""
    row: type[AnyRow]
    """Its rows; no other statistic has rows of this type."""
    title: str
    """Caption; `{response}` is the main response as people call it, `{size}` the factor of sizes."""
    section: Section
    """Where the report shows it."""
    compute: Callable[[Context], Iterable[AnyRow]]
    sentences: Callable[[Sequence[AnyRow], str], Iterable[str]] | None = None
    """What the rows warn of, given the main response: said among what the answer does not say."""
    order: int = LAST
    """Its place among the tables of its section."""
    sentence_order: int = LAST
    """The place of its sentences among those of all statistics: what matters most is said first."""
    own_form: bool = False
    """The report shows it in a form of its own (`steelyard.report`), not as the table that it is."""
    without_size: bool = False
    """Its rows are over sizes: the factor of sizes is no column."""
