"""The study: the question as a frozen value, exactly as one TOML file says it.

Plug-in settings (`site`, `system`, `workload`) are plain mappings here; `steelyard.study` checks them against the
`Settings` model of the plug-in that their `name` selects.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from steelyard.model.base import Value
from steelyard.model.load import Consistency as Consistency  # noqa: PLC0414 - part of this module
from steelyard.model.load import Load as Load  # noqa: PLC0414 - part of this module
from steelyard.model.load import LoadPhase as LoadPhase  # noqa: PLC0414 - part of this module

Level = str | int | float | bool
"""One value that a factor takes."""


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

    state: Literal["thaw", "reload", "truncate", "continue"] = "thaw"
    """thaw: the frozen golden copy, again for each trial that finds it changed; reload: fill anew; truncate: empty
    tables; continue: whatever the trial before left (each start of a cluster begins with the golden copy)."""
    populate_threads: int = Field(default=64, ge=1, le=4096)
    """Operations in flight while filling; filling is not measured."""
    settle_timeout_s: float = Field(default=120.0, gt=0)
    """How long to wait for compactions, hints and streams to end; after that the trial is marked still busy."""


class Design(Value):
    """Which treatments, in which order, how often."""

    kind: Literal["full-factorial", "one-at-a-time", "listed"] = "full-factorial"
    """full-factorial: every combination of levels; one-at-a-time: the base, and each factor varied alone; listed."""
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
    time_budget_h: float | None = Field(default=None, gt=0)
    """`check` refuses a plan that is estimated to take longer."""


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
    foreign_cpu_fraction: float = Field(default=0.2, ge=0, le=1)
    """CPU time taken by programs that are neither the cluster nor the laboratory, over all CPU time of a machine."""
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


class AnalysisChoice(Value):
    """How the reading half treats the trials."""

    warm_up_trials: int = Field(default=0, ge=0)
    """The first trials of each treatment within a start that are dropped (richardson2017: 9)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Confidence of every interval."""
    response: Literal["execution_time_ms", "throughput_per_s", "response_ms_mean", "response_ms_p99"] = (
        "execution_time_ms"
    )
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
    design: Design = Design()
    limits: Limits = Limits()
    analysis: AnalysisChoice = AnalysisChoice()
    probes: tuple[str, ...] = ("os",)
    """The probe plug-ins that read instruments on every node."""
    factors: dict[str, tuple[Level, ...]] = Field(default_factory=dict)
    """Factor name to its levels; names are dotted fields, in the order in which tables show them."""
