"""Trial frame: one row per trial, the input of all statistics across trials.

Seconds and requests inside a trial are repeated measurements of it. They are passed separately (`statistic.Within`),
and only statistics within trials read them, so no test of levels can use seconds as replicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from steelyard.analysis.treatments import NODES, Treatment
from steelyard.heavy import pl
from steelyard.judging.attempts import is_cut, orders_of_treatment
from steelyard.judging.measures import with_derived
from steelyard.judging.server_warm_up import still_falling
from steelyard.judging.trial_responses import response_of
from steelyard.model import responses
from steelyard.model.look import ONE_LOOK, Look
from steelyard.model.named_level import Level
from steelyard.model.node_limits import NodeLimits
from steelyard.model.study import SAME_FACTOR, SAME_LABELS, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_columns import COVARIATE, FIELDS, is_column

PROFILE = "node.profile"
CONTROL_REASON = "control (kept for drift and noise floor)"
WARM_UP_REASON = "warm-up (fixed count)"
TOO_FEW_REASON = "valid, but too few operations for this percentile"
NO_VALUE_REASON = "valid, but without a value of this response"


def _dtypes() -> dict[type, pl.DataType]:
    """Type of a column by the type of its values."""
    return {str: pl.String(), int: pl.Int64(), bool: pl.Boolean(), float: pl.Float64(), list: pl.List(pl.String())}


@dataclass(frozen=True)
class TrialFrame:
    """One row per trial (each attempt its own row), sorted by the time at which it began.

    Columns: trial_id, attempt, block, start, start_replicate, replicate, order_in_start, position, control, outcome,
    reasons (list), system_fault, begun_s, ended_s (seconds since the epoch); one column per factor, named as the
    factor; every response of `model.responses`; `covariate_NAME` for each covariate that a trial has;
    place_in_block (which planned start of its block it belongs to, in order of time, from 1); order_of_treatment (which
    attempt of this treatment its start served, voided ones included, from 1; null if not valid); warm_up; used (valid
    and not warm_up).
    """

    data: pl.DataFrame
    factors: Mapping[str, tuple[Level, ...]]
    """Factor to its levels, in the order of the study."""
    hard: tuple[str, ...]
    """The factors that need a new cluster: they vary over starts."""
    warm_up_trials: int
    shares: tuple[str, ...] = ()
    """Resources that the nodes share in any trial: cpu, disk, clock, memory, kernel."""
    own_limits: bool = False
    """Whether each node has a processor limit of its own in every trial: a node then adds what its limit allows."""
    numbers: Mapping[str, Mapping[Level, float]] = field(default_factory=dict)
    """Factors whose levels have numbers, named ones and profiles: factor to level to number."""
    falling: Mapping[str, float] = field(default_factory=dict)
    """Starts whose servers were warmed up, to what still fell at the end (`judging.server_warm_up.still_falling`)."""
    look: Look = ONE_LOOK
    """Which look at the study these trials give."""
    _parts: dict[tuple[bool, tuple[tuple[str, str], ...]], pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `where` gave, and the used rows of it: each response asks for the same parts."""

    @classmethod
    def build(
        cls,
        records: Sequence[TrialRecord],
        factors: Mapping[str, Sequence[Level]],
        hard: Sequence[str],
        warm_up_trials: int,
    ) -> TrialFrame:
        """Build the frame. `warm_up` marks the valid ones among the first `warm_up_trials` attempts of a treatment that
        a start served (`judging.attempts`). Raises ValueError if a factor has the name of another column.
        """
        clash = sorted(name for name in factors if is_column(name))
        if clash:
            raise ValueError(f"factor {clash[0]!r} has the name of a column of the trial frame")
        ordered, dtypes = in_order_of_time(records), _dtypes()
        columns: dict[str, pl.Series] = {
            name: pl.Series(name, [_plain(record, name) for record in ordered], dtype=dtypes[kind])
            for name, kind in FIELDS.items()
        }
        for name in factors:
            columns[name] = _factor_column(name, [record.treatment.get(name) for record in ordered])
        for name, response in responses.every().items():
            dtype = pl.Int64 if response.whole else pl.Float64
            columns[name] = pl.Series(name, [response_of(record, name) for record in ordered], dtype=dtype)
        for name in sorted({name for record in ordered for name in record.covariates}):
            values = [record.covariates.get(name) for record in ordered]
            columns[f"{COVARIATE}{name}"] = pl.Series(f"{COVARIATE}{name}", values, dtype=pl.Float64)
        columns["place_in_block"] = pl.Series("place_in_block", _places(ordered), dtype=pl.Int64)
        orders = orders_of_treatment(ordered, factors)
        columns["order_of_treatment"] = pl.Series("order_of_treatment", orders, dtype=pl.Int64)
        columns["warm_up"] = pl.Series("warm_up", [is_cut(order, warm_up_trials) for order in orders], dtype=pl.Boolean)
        data = pl.DataFrame(columns).with_columns(used=(pl.col("outcome") == "valid") & ~pl.col("warm_up"))
        return cls(
            data=data, factors={name: tuple(levels) for name, levels in factors.items()},
            hard=tuple(name for name in hard if name in factors), warm_up_trials=warm_up_trials,
            shares=tuple(sorted({share for record in ordered for share in record.shares})),
            own_limits=bool(ordered) and all(record.settings.node.cpus is not None for record in ordered),
            falling={one.start: still_falling(one.server_warm_up) for one in ordered if one.server_warm_up is not None},
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The factors' names."""
        return tuple(self.factors)

    def where(self, treatment: Mapping[str, Level], *, used: bool = False) -> pl.DataFrame:
        """The rows of one treatment, or of a part of one: some factors at fixed levels. `used`: those that are used,
        without control trials."""
        part = used, tuple((name, str(level)) for name, level in treatment.items())
        if part not in self._parts:
            kept = [_is_level(self.data.schema[name], name, level) for name, level in treatment.items()]
            if used:
                kept.append(pl.col("used") & ~pl.col("control"))
            self._parts[part] = self.data.filter(*kept) if kept else self.data
        return self._parts[part]

    def values(self, response: str, treatment: Mapping[str, Level] | None = None) -> pl.DataFrame:
        """The used rows, without control trials, that have a value of the response; estimates use these rows."""
        rows = self.where(treatment or {}, used=True)
        return rows if rows[response].null_count() == 0 else rows.filter(pl.col(response).is_not_null())

    def lacks(self, response: str, treatment: Mapping[str, Level]) -> bool:
        """Whether no used row of a treatment, or of a part of one, has a value of what happens in trials or does
        not: of a control that is not disrupted, none can."""
        if responses.of(response).source != "activities":
            return False
        rows = self.where(treatment, used=True)
        return 0 < rows.height == rows[response].null_count()

    def compared_by(self, response: str) -> TrialFrame:
        """The same with levels that lack the response as the last ones: the first of the others is the baseline."""
        if not any(self.lacks(response, {name: level}) for name, levels in self.factors.items() for level in levels):
            return self
        return replace(self, factors={
            name: tuple(sorted(levels, key=lambda level: self.lacks(response, {name: level})))
            for name, levels in self.factors.items()
        })  # fmt: skip

    @cached_property
    def treatments(self) -> tuple[Treatment, ...]:
        """Every treatment that has a row, in the order of the factors' levels."""
        seen: dict[tuple[Level, ...], dict[str, Level]] = {}
        for row in self.data.select(self.names).unique().iter_rows() if self.names else ():
            seen[row] = {name: level for name, level in zip(self.names, row, strict=True) if level is not None}
        if not self.names:
            return ({},) if self.data.height else ()
        return tuple(seen[key] for key in sorted(seen, key=lambda key: place(key, self.factors)))

    def numbered(self, rows: pl.DataFrame, factor: str) -> pl.DataFrame:
        """Rows with the numbers of the levels of a factor, in place of its levels."""
        known = self.numbers.get(factor)
        if known is None:
            return rows
        return rows.with_columns(pl.col(factor).replace_strict(dict(known), return_dtype=pl.Float64))

    def others(self, *without: str) -> Iterator[dict[str, Level]]:
        """Every combination of levels of the other factors that has a row, in order: the lines of a figure."""
        seen: list[dict[str, Level]] = []
        for treatment in self.treatments:
            rest = {name: level for name, level in treatment.items() if name not in without}
            if rest not in seen:
                seen.append(rest)
                yield rest

    def exclusions(self, response: str, treatment: Mapping[str, Level] | None = None) -> dict[str, int]:
        """Number of excluded rows by first reason: {reason: rows}, most frequent first."""
        counts: dict[str, int] = {}
        for row in self.where(treatment or {}).iter_rows(named=True):
            reason = _why_left_out(row, response)
            if reason:
                counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def in_order_of_time(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The records in the order of the frame's rows."""
    return sorted(records, key=lambda record: (record.begun_s, record.position, record.id, record.attempt))


def _places(ordered: Sequence[TrialRecord]) -> list[int]:
    blocks: dict[int, dict[str, int]] = {}
    for record in ordered:
        places = blocks.setdefault(record.block, {})
        places.setdefault(record.planned_start, len(places) + 1)
    return [blocks[record.block][record.planned_start] for record in ordered]


def place(key: tuple[Level | None, ...], factors: Mapping[str, Sequence[Level]]) -> tuple[tuple[int, str], ...]:
    """Sort key of a treatment: by the order of its factors' levels."""
    return tuple(
        (levels.index(level) if level is not None and level in levels else len(levels), f"{level}")
        for levels, level in zip(factors.values(), key, strict=True)
    )


def _plain(record: TrialRecord, name: str) -> object:
    if name == "trial_id":
        return record.id
    if name == "outcome":
        return record.verdict.outcome
    if name == "reasons":
        return [reason.kind.value for reason in record.verdict.reasons]
    if name == "system_fault":
        return record.verdict.system_fault
    return getattr(record, name)


def plain_levels(levels: Sequence[Level | None]) -> list[Level | None]:
    """Levels of one factor as values of one type, the narrowest that holds all: booleans, integers, floats, text."""
    kinds = {type(level) for level in levels if level is not None}
    if len(kinds) <= 1 and kinds <= {bool, int, float}:
        return list(levels)
    kind = float if kinds <= {int, float} else str
    return [None if level is None else kind(level) for level in levels]


def _factor_column(name: str, levels: Sequence[Level | None]) -> pl.Series:
    plain = plain_levels(levels)
    kinds = {type(level) for level in plain if level is not None}
    types = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64}
    return pl.Series(name, plain, dtype=types.get(kinds.pop(), pl.String) if kinds else pl.String)


def _is_level(dtype: pl.DataType, name: str, level: Level) -> pl.Expr:
    return pl.col(name) == (str(level) if dtype == pl.String else level)


def _why_left_out(row: Mapping[str, object], response: str) -> str:
    if row["outcome"] != "valid":
        reasons = row["reasons"]
        first = reasons[0] if isinstance(reasons, list) and reasons else "no reason recorded"
        return f"{row['outcome']}: {first}"
    if row["control"]:
        return CONTROL_REASON
    if row["warm_up"]:
        return WARM_UP_REASON
    if row[response] is None and responses.of(response).percentile is not None:
        return TOO_FEW_REASON if row["operations"] else NO_VALUE_REASON
    return NO_VALUE_REASON if row[response] is None else ""


def values_of_starts(rows: pl.DataFrame, response: str) -> dict[str, list[float]]:
    """The values of each start, in order of time. Rows of a treatment are few: a query would take twenty times as
    long."""
    starts: dict[str, list[float]] = {}
    for start, value in zip(rows["start"].to_list(), rows[response].to_list(), strict=True):
        if value is not None:
            starts.setdefault(start, []).append(float(value))
    return starts


def start_means(rows: pl.DataFrame, response: str) -> list[tuple[str, float, int]]:
    """(start, mean of its trials, number of its trials), in order of time."""
    starts = values_of_starts(rows, response)
    return [(start, math.fsum(values) / len(values), len(values)) for start, values in starts.items()]


def numeric(frame: TrialFrame, fewest: int = 2) -> tuple[str, ...]:
    """Factors with at least `fewest` levels, all of which are numbers or have one."""
    return tuple(
        name
        for name, levels in frame.factors.items()
        if len(levels) >= fewest and (name in frame.numbers or all(_is_number(level) for level in levels))
    )


def _is_number(level: Level) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool)


def factors_of(records: Sequence[TrialRecord], study: Study) -> tuple[dict[str, list[Level]], list[str]]:
    """Factors with their levels, in the study's order, then any that only the records' treatments name; and which of
    them are hard."""
    factors: dict[str, list[Level]] = {name: list(levels) for name, levels in study.factors.items()}
    if study.design.kind == "same":
        factors[SAME_FACTOR] = list(SAME_LABELS)
    hard: list[str] = []
    for record in sorted(records, key=lambda record: (record.position, record.id, record.attempt)):
        for name, level in record.treatment.items():
            levels = factors.setdefault(name, [])
            if level not in levels:
                levels.append(level)
        hard += [name for name in record.hard if name not in hard]
    return factors, [name for name in factors if name in hard]


def frame_of(records: Sequence[TrialRecord], study: Study) -> TrialFrame:
    """The trial frame of a study."""
    factors, hard = factors_of(records, study)
    frame = TrialFrame.build(with_derived(records, study), factors, hard, study.analysis.warm_up_trials)
    return replace(frame, numbers=numbers_of(factors, study) | memory_of_profiles(factors, records))


def memory_of_profiles(
    factors: Mapping[str, Sequence[Level]], records: Sequence[TrialRecord]
) -> dict[str, dict[Level, float]]:
    """The factor of profiles, where levels differ in their memory and in no other limit of a node: level to MiB, by the
    trials' complete settings."""
    sizes: dict[Level, set[float]] = {level: set() for level in factors.get(PROFILE, ())}
    others: dict[Level, set[NodeLimits]] = {level: set() for level in sizes}
    for record in records:
        level, node = record.treatment.get(PROFILE), record.settings.node
        if level in sizes and node.memory_mb is not None:
            sizes[level].add(float(node.memory_mb))
            others[level].add(node.model_copy(update={"memory_mb": None, "profile": ""}))
    if len({frozenset(each) for each in others.values()}) > 1:
        return {}
    numbers = {level: found.pop() for level, found in sizes.items() if len(found) == 1}
    return {PROFILE: numbers} if len(set(numbers.values())) == len(sizes) > 1 else {}


def numbers_of(factors: Mapping[str, Sequence[Level]], study: Study) -> dict[str, dict[Level, float]]:
    """Named factors whose levels all have a number: factor to level to number."""
    numbers: dict[str, dict[Level, float]] = {}
    for factor in study.levels:
        known = {level: study.number_of(factor, level) for level in factors.get(factor, ())}
        stated = {level: number for level, number in known.items() if number is not None}
        if stated and len(stated) == len(known):
            numbers[factor] = stated
    return numbers


def size_factor(frame: TrialFrame) -> str | None:
    """The factor of sizes: nodes, otherwise the first hard factor, with two numeric levels or more."""
    sizes = [name for name in numeric(frame) if name in frame.hard or name in NODES]
    return next((name for name in sizes if name in NODES), sizes[0] if sizes else None)


def counts_nodes(frame: TrialFrame, study: Study, size: str) -> bool:
    """Whether a factor is the number of nodes, also under its own name: each level counts as the nodes that it sets."""
    numbers = frame.numbers.get(size, {})
    return size in NODES or (
        bool(numbers)
        and all(any(study.fields_of({size: at}).get(name) == nodes for name in NODES) for at, nodes in numbers.items())
    )


def of_constant_size(frame: TrialFrame, study: Study, records: Iterable[TrialRecord]) -> TrialFrame:
    """The trials of clusters that kept their size, for statistics that read the number of nodes as a size: that of all
    others is the number at the beginning. Every trial where no factor is the number of nodes."""
    gone = {record.key for record in records if record.activities}
    if not gone or not any(counts_nodes(frame, study, name) for name in frame.factors):
        return frame
    kept = [key not in gone for key in frame.data.select("trial_id", "attempt").rows()]
    return replace(frame, data=frame.data.filter(kept))
