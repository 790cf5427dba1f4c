"""Interface of a statistic: a table of the results with its computation, title, section and sentences.

A module of `steelyard.analysis.statistics` defines one as `STATISTIC`; a new one needs nothing else. Report, command
line, exports and reference take it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Generic, Literal, TypeVar

from steelyard.analysis.comparisons.identical_systems import Floors
from steelyard.analysis.frame import TrialFrame, of_constant_size, size_factor
from steelyard.analysis.row import Row
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import np, pl
from steelyard.judging.activity_windows import ActivityWindow, Return
from steelyard.judging.stopping import Decision
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, TrialRecord

AnyRow = TypeVar("AnyRow", bound=Row)
LAST: Final = 1000


class Section(StrEnum):
    """A section of the report, in the order of the page; the value is its anchor there."""

    ANSWER = "answer"
    SIZE = "size"
    ACTIVITIES = "activities"
    INTERACTIONS = "interactions"
    SENSITIVITY = "sensitivity"
    SPREAD = "spread"
    EVERY_CELL = "every-cell"
    RESPONSE_TIME = "response-time"
    WITHIN = "within"
    ENERGY = "energy"
    VALIDITY = "validity"
    EVERY_TRIAL = "every-trial"


@dataclass(frozen=True)
class Seconds:
    """The seconds of the used trials of one treatment."""

    treatment: Treatment
    trials: Sequence[tuple[Attempt, pl.DataFrame]]
    """A row per second of the measured phases: `response_ms_mean`, `throughput_per_s`; `place`, the second's number,
    where some have no row."""


@dataclass(frozen=True)
class AroundActivity:
    """Responses in one window around an activity of a used trial."""

    trial: Attempt
    window: ActivityWindow
    values: Mapping[str, float]
    """Response to its value in the window; without those that its operations, or readings of its nodes, do not
    support."""
    controls: Sequence[Mapping[str, float]]
    """The same of each control in the trial's block, which has the same settings but the policy `none`. Around the
    first activity: from the time on at which the trial's policy, asked again of what the control measured, would have
    changed its size in the same direction; without those in which it would not have. Around later ones, and of a policy
    that follows no response: in the same seconds of its own trial."""


@dataclass(frozen=True)
class ActivityReturn:
    """When the mean response time of a used trial was back in the range of before an activity."""

    trial: Attempt
    during: ActivityWindow
    returned: Return


AlignedKind = Literal["scale-out", "scale-in", "disruption"]


@dataclass(frozen=True)
class AlignedTrial:
    """A used trial around the decision for its first activity, or the beginning of its first disruption, second by
    second, and its controls."""

    trial: Attempt
    kind: AlignedKind
    curves: Mapping[str, Mapping[int, float]]
    """Response to its values by second since the decision; those that have one."""
    nodes: Mapping[int, int]
    """Nodes in service in each second."""
    arrived_s: Sequence[float]
    """When each node of the activity came into service, or left, since the decision, in order; when the targets of a
    disruption were healed, and when they had recovered."""
    controls: Sequence[Mapping[str, Mapping[int, float]]]
    """The curves of each control in the trial's block, from the same times on as those of `AroundActivity`; of a
    disruption, in the same seconds of its own trial."""


@dataclass(frozen=True)
class Within:
    """Data within the used trials, read before the analysis, which gets frames and no store."""

    seconds: Sequence[Seconds] = ()
    percentiles: Sequence[Row] = ()
    """Rows of the statistic `percentile`, computed while the histograms are read."""
    pooled: Sequence[Row] = ()
    """Rows of the statistic `pooled_percentile`, computed while the histograms are read."""
    sampled: Sequence[Seconds] = ()
    """The seconds of the measures that the study names and that are means over time: a column each, and `place`."""
    stages: Sequence[Seconds] = ()
    """In place of seconds, a row for each stage of the jobs of trials that were jobs, with the samples of its end."""
    around: Sequence[AroundActivity] = ()
    """Windows around the activities of the trials, in order of time within each."""
    returns: Sequence[ActivityReturn] = ()
    aligned: Sequence[AlignedTrial] = ()
    """The trials with activities around the first."""
    over_objective: Mapping[Attempt, float] = field(default_factory=dict)
    """Percent of the seconds of each trial in which the study's objective was not met; of responses that have a value
    in each second."""
    """The trials with an activity, each around its first."""


class Context:
    """Input of statistics: the trials, the study, and other statistics."""

    def __init__(
        self, frame: TrialFrame, study: Study, *, seed: int, statistics: Sequence[Statistic[Any]] = (),
        records: Sequence[TrialRecord] = (), floors: Floors | None = None, decision: Decision | None = None,
        within: Within | None = None, shares_with: Context | None = None,
    ) -> None:  # fmt: skip
        """`statistics`: those available through `of`. `within`: None if no data within trials were read. `frame` has
        its levels in the order by which the response is compared, `whole` in that of the study. `shares_with`: the
        context of the same trials by another response, which has computed some of it."""
        self.whole, self.frame = frame, frame.compared_by(study.analysis.response)
        self.study, self.records, self.seed = study, records, seed
        self.floors, self.decision, self.within = floors or Floors(), decision, within or Within()
        self._once: dict[tuple[Any, ...], Any] = {} if shares_with is None else shares_with._once
        self._statistics = {statistic.row: statistic for statistic in statistics}
        self._computed: dict[type[Row], tuple[Row, ...] | None] = {}

    @property
    def response(self) -> str:
        """The main response."""
        return self.study.analysis.response

    @property
    def further_responses(self) -> tuple[str, ...]:
        """The other responses that the study names: their p-values belong to the same families."""
        return tuple(name for name in self.study.analysis.every_response if name != self.response)

    @property
    def confidence(self) -> float:
        """Confidence level of every interval."""
        return self.study.analysis.confidence

    @property
    def size(self) -> str | None:
        """The factor of sizes."""
        return size_factor(self.frame)

    @cached_property
    def sized(self) -> TrialFrame:
        """The trials for statistics that read the number of nodes as a size (`frame.of_constant_size`)."""
        return of_constant_size(self.frame, self.study, self.records)

    @cached_property
    def seconds_of_constant_size(self) -> Sequence[Seconds]:
        """The seconds of the trials whose cluster kept its size: in others a change of level is theirs to have."""
        changed = {record.key for record in self.records if record.activities}
        kept = ((of, [one for one in of.trials if one[0] not in changed]) for of in self.within.seconds)
        return [Seconds(of.treatment, trials) for of, trials in kept if trials]

    @property
    def is_open(self) -> bool:
        """Whether the load, or one of its levels, is an open loop: then its schedule sets the throughput."""
        return self.study.load.is_open or "load.schedule" in self.frame.factors

    def generator(self) -> np.random.Generator:
        """Random generator of a statistic: each starts from the same seed, so statistics do not affect each other."""
        return np.random.default_rng(self.seed)

    def once(self, row: type[AnyRow], response: str, compute: Callable[[], Iterable[AnyRow]]) -> Sequence[AnyRow]:
        """Rows about a response that are the same whichever response is the main one, but for the order of levels:
        computed once for all of them."""
        key = row, response, tuple(self.frame.factors.items())
        if key not in self._once:
            self._once[key] = tuple(compute())
        rows: Sequence[AnyRow] = self._once[key]
        return rows

    def of(self, row: type[AnyRow]) -> tuple[AnyRow, ...]:
        """The rows of a statistic, computed on first use.

        Raises KeyError if no statistic has such rows, RuntimeError for a cycle of statistics.
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
    """Name of the table in `--json`, of its CSV file, and of the module."""
    row: type[AnyRow]
    """Its rows; no other statistic has rows of this type."""
    title: str
    """Caption; `{response}` is the main response as people call it, `{size}` the factor of sizes."""
    section: Section
    """Where the report shows it."""
    compute: Callable[[Context], Iterable[AnyRow]]
    sentences: Callable[[Sequence[AnyRow], str], Iterable[str]] | None = None
    """Caveats from the rows, given the main response."""
    order: int = LAST
    """Its place among the tables of its section."""
    sentence_order: int = LAST
    """Rank of its sentences among those of all statistics: the most important first."""
    least_sizes: int = 0
    """Minimum number of sizes with which the report's page shows it; files and downloads always have it."""
    published_form: bool = False
    """In the form of a published study: the page has it in its section where the study names a publication, otherwise
    in the appendix."""
    appendix: bool = False
    """The page has it in its appendix: another table answers the same question, or none of the answers rests on it."""
    of_records: bool = False
    """Its rows are of trials or starts whatever the response: further responses of a study do not repeat them."""
    without_size: bool = False
    """Its rows are over sizes: the factor of sizes is not a column."""
