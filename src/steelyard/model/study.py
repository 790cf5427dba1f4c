"""Study: the question as a frozen value, exactly as one TOML file states it.

Plug-in settings (`site`, `system`, `workload`) are plain mappings here; `steelyard.study` checks them against the
`Settings` model of the plug-in that their `name` selects.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    field_validator,
)

from steelyard.model.cost import Cost
from steelyard.model.demand import Demand
from steelyard.model.derived import DerivedLevel
from steelyard.model.disruption import DisruptionChoice
from steelyard.model.file_format import FileFormat
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load
from steelyard.model.named_level import Level, NamedLevel, level_key
from steelyard.model.node_limits import NodeLimits
from steelyard.model.objective import Limit, parse
from steelyard.model.one_of import OneOf
from steelyard.model.percentiles import needed
from steelyard.model.policy import PolicyChoice
from steelyard.model.responses import awaited_names, main_names, of
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.value import Choice, Value, later

LEAST_STARTS = 6
"""Minimum number of starts for an interval: below six values a median has no interval at 95% (its confidence level is
at most 1 - 2 x 0.5^5 = 93.75%), and t intervals that stop a study cover too little."""
SAME_FACTOR = "label"
"""The factor in a study of identical systems: it sets nothing."""
SAME_LABELS = ("A", "B")
ALIASES = {
    "nodes": "site.nodes",
    "site": "site.name",
    "system": "system.name",
    "workload": "workload.name",
    "link": "link.name",
    "policy": "policy.name",
    "disruption": "disruption.name",
}
"""Short factor names, which plans, stores and tables show."""


class SiteChoice(Choice):
    """Site that lends the nodes."""

    nodes: int = Field(default=1, ge=1, le=1000)
    """Number of database nodes; usually a factor."""
    load_nodes: int = Field(default=1, ge=1, le=64)
    """Number of nodes that drive load."""


class LoadSiteChoice(Choice):
    """Site that lends the nodes that drive load, where it is another than that of the databases."""

    name: str = ""
    """Site of the load nodes, by name; empty: `site` lends them, too."""
    nodes: int = Field(default=1, ge=1, le=64)
    """Number of nodes that drive load, in place of `site.load_nodes`."""


class Data(Value):
    """Data state at the beginning of a trial."""

    state: Literal["restore", "reload", "truncate", "continue"] = "restore"
    """restore: the snapshot of the filled tables, restored for each trial that finds them changed; reload: fill again;
    truncate: empty tables, so that reads find only what the trial has written; a workload whose reads would find
    nothing is refused by `check`; continue: whatever the previous trial left (each start of a cluster begins with the
    snapshot)."""
    populate_threads: int = Field(default=64, ge=1, le=4096)
    """Operations in flight while filling the tables; filling is not measured."""
    settle_timeout_s: float = Field(default=120.0, gt=0)
    """How long to wait for compactions, hints and streams to finish; after that the trial is marked as still busy."""


class Until(Value):
    """Stopping rule: replicate until every treatment's mean is known precisely enough. Evaluated after each whole
    block, from sealed trials only; `design.starts` is the maximum, and is planned beforehand."""

    width_percent: float = Field(gt=0, le=100)
    """The target: half the width of the t interval of a treatment's mean over its start means, in percent of that
    mean, is at most this. A ratio of two such means has an interval about 1.4 times as wide."""
    least_starts: int = Field(default=10, le=1000, json_schema_extra={"minimum": LEAST_STARTS})
    """No interval is evaluated before every treatment has this many starts. Values below 10 cause a note."""
    response: Annotated[str, OneOf(lambda: ("main", *awaited_names()))] = "main"
    """The response whose intervals are evaluated; main: `analysis.response`."""
    hours: float | None = Field(default=None, gt=0)
    """Limit of measuring time in hours. No block begins if it would exceed the limit, assuming that it takes as long as
    the mean of the previous blocks. Counted from sealed trials: for each start, from its lease to the end of its last
    trial."""

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
    """Design: which treatments, in which order, how often."""

    kind: Literal["full-factorial", "fractional", "one-at-a-time", "listed", "same"] = "full-factorial"
    """full-factorial: every combination of levels; fractional: a subset of the combinations of the two-level factors,
    by generators or resolution, with every level of the other factors; one-at-a-time: the base, and each factor varied
    alone; listed: the treatments in `treatments`; same: no factors, the one treatment against itself, as labels A and B
    on separate starts that alternate: it measures the noise floor of this machine, which is kept for later studies."""
    order: Literal["blocks", "published"] = "blocks"
    """blocks: randomised complete blocks, the order of starts balanced over them; published: combinations as
    listed in each block, all trials of a treatment within a start in a row, as the published studies did."""
    starts: int = Field(default=2, ge=1, le=1000)
    """Cluster starts per combination of hard-to-change levels: the replication of the whole plot."""
    trials: int = Field(default=3, ge=1, le=10_000)
    """Trials per treatment within a start: repeated measures of it."""
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    """Determines every random order and every trial's operations."""
    treatments: tuple[dict[str, Level], ...] = ()
    """Listed designs: the treatments, one table each. A list of levels in a table gives one treatment with
    each of them; several lists, for every combination."""
    base: dict[str, Level] = Field(default_factory=dict)
    """One-at-a-time designs: the base level of each factor (default: the first)."""
    control: dict[str, Level] | None = None
    """A treatment that is run once more in every block, to detect drift and to measure the noise floor."""
    generators: dict[str, str] = Field(default_factory=dict)
    """Fractional designs: a factor to the product of factors that its level follows, such as "nodes * load.threads",
    optionally preceded by a minus. First levels count as -1, second ones as +1."""
    resolution: int | None = Field(default=None, ge=3, le=15)
    """Fractional designs without generators: the smallest fraction with this resolution is used. 3: no factor is
    aliased with another; 4: nor with a two-factor interaction; 5: no two two-factor interactions are aliased."""
    time_budget_h: float | None = Field(default=None, gt=0)
    """`check` refuses a plan whose estimated duration is longer."""
    cost_limit: float | None = later(None, gt=0)
    """`check` refuses a plan whose rented nodes may cost more, at `cost.price_per_node_hour` for as long as their site
    lets them live (site `ec2`: `most_hours`)."""
    until: Until | None = None
    """A stopping rule, which can end the study before its last block."""


class Limits(Value):
    """Thresholds of the verdict on a trial; crossing one makes it invalid."""

    lag_p99_ms: float = Field(default=10.0, gt=0)
    """Open loop: the largest p99 of the generator's pacing, in spite of the name not of lag: how late it sent
    operations although fewer than allowed were in flight. Waiting for a free place in flight is the system's and does
    not count."""
    offered_rate_fraction: float = Field(default=0.98, gt=0, le=1)
    """Open loop: the smallest fraction of the offered rate that must have been sent."""
    generator_cpu_fraction: float = Field(default=0.9, gt=0)
    """The largest share of one core that the generator's busiest thread may use."""
    generator_ceiling_fraction: float = Field(default=0.5, gt=0)
    """The largest fraction of the generator's ceiling, as measured by `steelyard calibrate`, that it may reach. At one
    half, an operation waits for the generator as long as the generator works on it."""
    background_cpu_fraction: float = Field(default=0.2, ge=0, le=1)
    """Background load: CPU time of programs that are neither the cluster nor the laboratory, as a fraction of all CPU
    time of a machine."""
    error_fraction: float = Field(default=0.01, ge=0, le=1)
    """Failed operations as a fraction of all operations."""
    not_found_fraction: float = Field(default=0.0, ge=0, le=1)
    """Reads of keys that must exist but returned no row, as a fraction of all answered operations; and answers that
    held other values than were written (see `validate_fraction` of the workload), as a fraction of all operations."""
    probe_gap_s: float = Field(default=5.0, gt=0)
    """The longest permitted time without a sample from any probe on any node."""
    clock_s: float = Field(default=0.1, gt=0)
    """The largest error that may be left in times from nodes with another clock, which are put on the conductor's: by
    how much the clock's offset moved during the trial, plus the error of measuring it."""
    clock_step_s: float = Field(default=0.1, gt=0)
    """Largest jump of this machine's clock while the load runs; all times of a trial come from it. NTP's gradual
    correction (up to 500 ppm) is not a jump."""
    link_late_ms: float = Field(default=0.25, gt=0)
    """The largest mean lateness of frames that the link program delivers: what it adds to each frame of a request, on
    top of the link that was asked for."""
    link_stalled_fraction: float = Field(default=0.01, gt=0, le=1)
    """The largest part of the time for which the link program may stall, in pauses of 1 ms or more. In a closed
    loop a pause delays only what is in flight, so the mean does not show it."""
    link_unread_fraction: float = Field(default=0.001, ge=0, le=1)
    """Frames that the kernel dropped because the link program did not read them in time, as a fraction of all that
    nodes sent. At one in a thousand, about one operation in a hundred, of ten frames each, loses a frame."""
    policy_late_fraction: float = later(0.05, gt=0, le=1)
    """How often a scaling policy may be asked late, or before every node had said something of the last period, as a
    fraction of all times."""
    steal_fraction: float = Field(default=0.1, ge=0, le=1)
    """CPU time used by other guests of the same hardware, as a fraction of all CPU time."""
    attempts: int = Field(default=3, ge=1, le=20)
    """Maximum number of attempts at a trial that the laboratory spoilt."""
    quiet_wait_s: float = Field(default=1800.0, ge=0)
    """How long to wait for a quiet machine before a trial: for background load and steal within their limits. After
    that `run` ends; run the same command later to resume; 0: it ends at once. Not for nodes on other machines."""
    start_timeout_s: float = Field(default=300.0, gt=0)
    """How long a cluster may take until every node is ready."""
    trial_timeout_s: float = Field(default=3600.0, gt=0)
    """How long a phase of a trial may take; filling the tables too, which happens once per start."""


class AnalysisChoice(Value):
    """How the analysis treats the trials."""

    warm_up_trials: int = Field(default=0, ge=0)
    """Number of trials to drop at the beginning of each treatment within a start (richardson2017: 9)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Confidence of every interval; with several looks that of all of them together."""
    looks: Literal["one", "several"] = "one"
    """Whether more blocks may be measured after a look at the finished plan. one: the intervals have the whole
    confidence, and beyond the plan no verdict is final; several: look k has the error (1 - confidence) / 2^k, at 95%
    97.5%, 98.75%, ..., so that all together keep it. Fixed with the first trial; not with `design.until`."""
    response: Annotated[str, OneOf(main_names)] = "execution_time_ms"
    """The main response of the report: any of `docs/reference/numbers.md`, of operations or of samples. Where every
    trial ends after a duration, its execution time is the study's, and the default is throughput_per_s in a closed
    loop, response_ms_p99 where the load is offered, or response_ms_p50 where that is fewer than 1,000 operations."""
    responses: tuple[Annotated[str, OneOf(main_names)], ...] = ()
    """Further responses that are analysed like the main one. Their p-values and its own are one family of Holm's
    correction."""
    objective: str = ""
    """A limit of a response, such as "response_ms_p99 < 10": each treatment meets it, does not, or is undecided, by the
    interval over starts; the answer names the highest level that meets it. In the response's unit; <, <=, >, >=."""
    compared: str = ""
    """Factor whose levels the answer compares, each against the smallest or the first. Default: the number of nodes,
    otherwise another numeric factor that needs new starts, otherwise the first factor that is not the workload. The
    answer then also states how the last level's change depends on that size."""
    equivalence_margin_percent: float | None = Field(default=None, gt=0, le=100)
    """The largest change that is too small to matter: levels whose ratio has its interval within 1 / (1 + m) and 1 + m
    are called equivalent. Without it, none are; declare it before the trials."""
    demand: Demand | None = later(None)
    """What each size carries. Without it there are no measures of elasticity of clusters that change their size."""

    @field_validator("objective")
    @classmethod
    def _is_limit(cls, objective: str) -> str:
        limit = parse(objective) if objective else None
        if limit is not None and limit.response not in main_names():
            near = difflib.get_close_matches(limit.response, main_names(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f": {', '.join(main_names())}"
            raise ValueError(f"unknown response {limit.response!r}{hint}")
        return objective

    @property
    def every_response(self) -> tuple[str, ...]:
        """The main response, then the further ones."""
        return tuple(dict.fromkeys((self.response, *self.responses)))

    @property
    def limit(self) -> Limit | None:
        """The objective as a limit; None without one."""
        return parse(self.objective) if self.objective else None

    @property
    def needed(self) -> tuple[str, ...]:
        """Every response that the analysis needs a value of: those named, and that of the objective."""
        limit = self.limit
        return tuple(dict.fromkeys((*self.every_response, *([limit.response] if limit else []))))

    @property
    def operations_needed(self) -> dict[str, int]:
        """Each needed percentile of operations, with the operations below which a trial has no value of it."""
        known = {name: of(name) for name in self.needed}
        return {
            name: needed(one.percentile) for name, one in known.items() if one.percentile and one.source == "records"
        }


class About(Value):
    """Name and question of the study."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """Folder of the study in a store: lower-case letters, digits, `_`, `.`, `-`."""
    question: str
    """Question of the study, as a sentence for the report."""
    title: str = ""
    """Heading of the report; default: the name."""
    notes: str = ""
    """Notes for the reader: differences from a publication, limits of the study."""
    source: str = ""
    """The publication that the study repeats, if any."""


class Study(Value):
    """One study file. Any field below `site`, `system`, `workload`, `load`, `data`, `node`, `link`, `load_site`,
    `policy` can be a factor, by its dotted name; `nodes` is short for `site.nodes` and `workload` for `workload.name`.
    A factor whose levels are under `levels` has its own name."""

    format: FileFormat = 1
    """Version of the study file's format."""
    study: About
    site: SiteChoice = SiteChoice(name="local")
    system: Choice
    workload: Choice
    load: Load
    data: Data = Data()
    node: NodeLimits = NodeLimits()
    link: LinkChoice = LinkChoice()
    load_site: LoadSiteChoice = LoadSiteChoice()
    policy: PolicyChoice = later(PolicyChoice())
    disruption: DisruptionChoice = later(DisruptionChoice())
    derived: dict[str, DerivedLevel] = later({})
    """Names of thresholds that trials without a policy give, for `policy.threshold_of`."""
    server_warm_up: ServerWarmUp = ServerWarmUp()
    design: Design = Design()
    limits: Limits = Limits()
    analysis: AnalysisChoice = AnalysisChoice()
    cost: Cost = Cost()
    probes: tuple[str, ...] = ("os",)
    """Probe plug-ins that take readings of the nodes and of the system on them."""
    probe: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Name of a probe, as `probes` has it, to its settings."""
    measure_links: bool = False
    """Measure round trip, loss and rate of every path between the nodes before the first trial of a start and after its
    last, as in a study that asks for a link; false: only round trips from load nodes where no link is asked for."""
    measure_idle_s: float = later(0.0, ge=0, le=3600)
    """Idle time before the load of each trial, in which the power of the idle nodes is measured."""
    factors: dict[str, tuple[Level, ...]] = Field(default_factory=dict)
    """Factor name to its levels; names are dotted field names, or names under `levels`, in the order in which tables
    show them."""
    levels: dict[str, dict[str, NamedLevel]] = Field(default_factory=dict)
    """Named factor to its levels, each with the fields that it sets."""

    def named_level(self, factor: str, level: Level) -> NamedLevel | None:
        """The named level of a factor; None if the factor is a field."""
        return self.levels.get(factor, {}).get(level_key(level))

    def fields_of(self, treatment: Mapping[str, Level]) -> dict[str, Level]:
        """The fields that a treatment sets: those of its named levels, and its factors that are fields."""
        fields: dict[str, Level] = {}
        for factor, level in treatment.items():
            named = self.named_level(factor, level)
            fields |= {factor: level} if named is None else named.sets
        return fields

    def fields_under(self, factor: str) -> tuple[str, ...]:
        """The fields that any level of a factor sets; of a factor that is a field, itself."""
        if factor not in self.levels:
            return (factor,)
        return tuple(dict.fromkeys(field for named in self.levels[factor].values() for field in named.sets))

    def number_of(self, factor: str, level: Level) -> float | None:
        """The number of a level in regressions; None if it has none."""
        named = self.named_level(factor, level)
        if named is not None and named.number is not None:
            return named.number
        return float(level) if isinstance(level, int | float) and not isinstance(level, bool) else None

    def unit_of(self, factor: str) -> str:
        """Unit of the numbers of the levels of a factor; empty if there is none."""
        return next((named.unit for named in self.levels.get(factor, {}).values() if named.unit), "")

    @property
    def tried(self) -> dict[str, tuple[Level, ...]]:
        """Factors and their levels in order: those under `factors`, then those that only listed treatments name, with
        their levels in order of occurrence."""
        only_listed: dict[str, dict[Level, None]] = {}
        for treatment in self.design.treatments:
            for factor, level in treatment.items():
                if factor not in self.factors:
                    only_listed.setdefault(factor, {})[level] = None
        levels = {factor: tuple(dict.fromkeys(levels)) for factor, levels in self.factors.items()}
        return levels | {factor: tuple(levels) for factor, levels in only_listed.items()}

    def values_of(self, fields: Sequence[str], fixed: Level) -> tuple[Level, ...]:
        """The values that a field takes under the study's factors, each once. `fields`: its names, long and short;
        `fixed`: its value where no level sets it."""
        for factor, levels in self.tried.items():
            every = [self.fields_of({factor: level}) for level in levels]
            if any(name in sets for sets in every for name in fields):
                values = (next((sets[name] for name in fields if name in sets), fixed) for sets in every)
                return tuple(dict.fromkeys(values))
        return (fixed,)
