"""The study: the question as a frozen value, exactly as one TOML file says it.

Plug-in settings (`site`, `system`, `workload`) are plain mappings here; `steelyard.study` checks them against the
`Settings` model of the plug-in that their `name` selects.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from steelyard.model import former_words
from steelyard.model.cost import Cost as Cost  # noqa: PLC0414 - part of this module
from steelyard.model.load import Consistency as Consistency  # noqa: PLC0414 - part of this module
from steelyard.model.load import Load as Load  # noqa: PLC0414 - part of this module
from steelyard.model.load import LoadPhase as LoadPhase  # noqa: PLC0414 - part of this module
from steelyard.model.one_of import OneOf
from steelyard.model.responses import main_names
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.value import Value

Level = str | int | float | bool
"""One value that a factor takes."""
LEAST_STARTS = 6
"""Below six values a median has no interval at 95% (2 x 0.5^5 = 6.25% is left out), and t intervals that stop a study
cover too little."""
SAME_FACTOR = "label"
"""The factor of a study of identical systems: it sets nothing."""
SAME_LABELS = ("A", "B")


class Choice(Value):
    """A plug-in by name, and its settings beside the name."""

    model_config = ConfigDict(extra="allow")

    name: str
    """Module name, entry point, or path of the plug-in."""

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.__pydantic_extra__ or {})


class SiteChoice(Choice):
    """Where the nodes come from."""

    nodes: int = Field(default=1, ge=1, le=1000)
    """Number of database nodes; usually a factor."""
    load_nodes: int = Field(default=1, ge=1, le=64)
    """Number of nodes that drive load."""


class Data(Value):
    """The data state that a trial starts from."""

    state: Literal["restore", "reload", "truncate", "continue"] = "restore"
    """restore: the snapshot of the filled tables, again for each trial that finds them changed; reload: fill anew;
    truncate: empty tables; continue: whatever the trial before left (each start of a cluster begins with the snapshot).
    Earlier versions called restore thaw, which is still read."""
    populate_threads: int = Field(default=64, ge=1, le=4096)
    """Operations in flight while filling; filling is not measured."""
    settle_timeout_s: float = Field(default=120.0, gt=0)
    """How long to wait for compactions, hints and streams to end; after that the trial is marked still busy."""

    @field_validator("state", mode="before")
    @classmethod
    def _word_of_today(cls, value: Any) -> Any:
        return former_words.level("data.state", value)


class Until(Value):
    """Replicate until every treatment's mean is known well enough. Judged after each whole block, from the sealed
    trials alone; `design.starts` is the most that is done, and is planned beforehand."""

    width_percent: float = Field(gt=0, le=100)
    """Narrow enough: half of the t interval of a treatment's mean over its start means, in per cent of that mean, is at
    most this. A ratio of two such means has an interval about 1.4 times as wide."""
    least_starts: int = Field(default=10, le=1000, json_schema_extra={"minimum": LEAST_STARTS})
    """No interval is judged before every treatment has so many starts. Below 10 is noted."""
    response: Annotated[str, OneOf(lambda: ("main", *main_names()))] = "main"
    """The response whose intervals are judged; main: `analysis.response`."""
    hours: float | None = Field(default=None, gt=0)
    """No block is begun that would, if it took as long as the mean of those before, end after so many hours of
    measuring. Counted from the sealed trials: for each start, from its lease to the end of its last trial."""

    @field_validator("least_starts")
    @classmethod
    def _covers(cls, value: int) -> int:
        if value < LEAST_STARTS:
            raise ValueError(
                f"must be at least {LEAST_STARTS}: so few values look alike by chance and end the study too early, so "
                "that a 95% interval may hold the truth less often: with 2 in 88% of simulated studies"
            )
        return value


class Design(Value):
    """Which treatments, in which order, how often."""

    kind: Literal["full-factorial", "fractional", "one-at-a-time", "listed", "same"] = "full-factorial"
    """full-factorial: every combination of levels; fractional: a part of the combinations of the factors that have two
    levels, by generators or resolution, with every level of the others; one-at-a-time: the base, and each factor varied
    alone; listed; same: no factors, the one treatment against itself, as labels A and B on starts of their own in
    random order: it measures the noise floor of this machine, which is kept for later studies."""
    order: Literal["blocks", "published"] = "blocks"
    """blocks: randomised complete blocks; published: all trials of a treatment one after another, as the studies
    did."""
    starts: int = Field(default=2, ge=1, le=1000)
    """Cluster starts of each combination of hard-to-change levels: the replication of the whole plot."""
    trials: int = Field(default=3, ge=1, le=10_000)
    """Trials of each treatment within a start: repeated measures of it."""
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    """Decides every order and every trial's operations."""
    treatments: tuple[dict[str, Level], ...] = ()
    """Listed designs: the treatments, one table each."""
    base: dict[str, Level] = Field(default_factory=dict)
    """One-at-a-time designs: the level of each factor from which the others depart (default: the first)."""
    control: dict[str, Level] | None = None
    """A treatment that runs once more in every block: drift detector and noise floor."""
    generators: dict[str, str] = Field(default_factory=dict)
    """Fractional designs: a factor to the product of factors that its level follows, such as "nodes * load.threads", or
    with a minus before it. First levels count as -1, second ones as +1."""
    resolution: int | None = Field(default=None, ge=3, le=15)
    """Fractional designs without generators: the smallest fraction of this resolution is taken. 3: no factor is an
    alias of another; 4: nor of an interaction of two; 5: no two interactions of two are aliases."""
    time_budget_h: float | None = Field(default=None, gt=0)
    """`check` refuses a plan that is estimated to take longer."""
    until: Until | None = None
    """A rule that ends the study before its last block."""

    @field_validator("treatments")
    @classmethod
    def _words_of_today(cls, treatments: tuple[dict[str, Level], ...]) -> tuple[dict[str, Level], ...]:
        return tuple(former_words.treatment(treatment) for treatment in treatments)

    @field_validator("base", "control")
    @classmethod
    def _levels_of_today(cls, treatment: dict[str, Level] | None) -> dict[str, Level] | None:
        return None if treatment is None else former_words.treatment(treatment)


class Limits(Value):
    """Thresholds of the verdict on a trial; crossing one makes it invalid."""

    lag_p99_ms: float = Field(default=10.0, gt=0)
    """Open loop: the generator sent later than due by more than this at p99 although a place in flight was free."""
    offered_rate_fraction: float = Field(default=0.98, gt=0, le=1)
    """Open loop: the least fraction of the offered rate that must have been sent."""
    generator_cpu_fraction: float = Field(default=0.9, gt=0)
    """The most CPU of its own core that the generator's busiest thread may take."""
    generator_ceiling_fraction: float = Field(default=0.5, gt=0)
    """The most of its ceiling, as `steelyard calibrate` measured it, that the generator may reach. At one half an
    operation waits as long for the generator as the generator works on it."""
    background_cpu_fraction: float = Field(default=0.2, ge=0, le=1)
    """Background load: CPU time taken by programs that are neither the cluster nor the laboratory, over all CPU time of
    a machine. Earlier versions called it `foreign_cpu_fraction`, which is still read."""
    error_fraction: float = Field(default=0.01, ge=0, le=1)
    """Failed operations over all operations."""
    not_found_fraction: float = Field(default=0.0, ge=0, le=1)
    """Reads of keys that must exist but returned no row, over all answered operations; and answers that held other
    values than were written (see `validate_fraction` of workload files), over all operations."""
    probe_gap_s: float = Field(default=5.0, gt=0)
    """The longest time without a sample of any probe on any node."""
    steal_fraction: float = Field(default=0.1, ge=0, le=1)
    """CPU time taken by other guests of the same hardware, over all CPU time."""
    attempts: int = Field(default=3, ge=1, le=20)
    """How often a trial that the laboratory spoilt is tried."""
    start_timeout_s: float = Field(default=300.0, gt=0)
    """How long a cluster may take until every node is ready."""
    trial_timeout_s: float = Field(default=3600.0, gt=0)
    """How long a phase of a trial may take."""

    @model_validator(mode="before")
    @classmethod
    def _keys_of_today(cls, written: Any) -> Any:
        return former_words.keys(written, former_words.LIMITS)


class AnalysisChoice(Value):
    """How the reading half treats the trials."""

    warm_up_trials: int = Field(default=0, ge=0)
    """The first trials of each treatment within a start that are dropped (richardson2017: 9)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Confidence of every interval."""
    response: Annotated[str, OneOf(main_names)] = "execution_time_ms"
    """The main response of the report."""
    equivalence_margin_percent: float | None = Field(default=None, gt=0, le=100)
    """The change that is too small to matter: levels whose ratio lies within 1 / (1 + m) and 1 + m are called
    equivalent. Without it nothing is; declare it before the trials."""


class About(Value):
    """What is asked."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """Folder of the study in a store: lower-case letters, digits, `_`, `.`, `-`."""
    question: str
    """What the study asks, as a sentence for the report."""
    title: str = ""
    """Heading of the report; the name, if there is none."""
    notes: str = ""
    """What a reader should know: what differs from a publication, what cannot be shown."""
    source: str = ""
    """The publication that the study repeats, if any."""


class Study(Value):
    """One study file. Any field below `site`, `system`, `workload`, `load`, `data` can be a factor, by dotted name;
    `nodes` is short for `site.nodes` and `workload` for `workload.name`."""

    format: Literal[1] = 1
    """Version of the study file's format."""
    study: About
    site: SiteChoice = SiteChoice(name="local")
    system: Choice
    workload: Choice
    load: Load
    data: Data = Data()
    server_warm_up: ServerWarmUp = ServerWarmUp()
    design: Design = Design()
    limits: Limits = Limits()
    analysis: AnalysisChoice = AnalysisChoice()
    cost: Cost = Cost()
    probes: tuple[str, ...] = ("os",)
    """The probe plug-ins that read instruments on every node."""
    factors: dict[str, tuple[Level, ...]] = Field(default_factory=dict)
    """Factor name to its levels; names are dotted fields, in the order in which tables show them."""

    @field_validator("factors")
    @classmethod
    def _levels_of_today(cls, factors: dict[str, tuple[Level, ...]]) -> dict[str, tuple[Level, ...]]:
        return {
            factor: tuple(former_words.level(factor, level) for level in levels) for factor, levels in factors.items()
        }
