"""Table of the nodes' limits: asked and measured, and the nodes that stand out."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from steelyard.format import NONE, count, listed, number, percent
from steelyard.judging.gauge import SPEED, TOLERANCE, GaugedLimit, limits_of
from steelyard.model.gauged import Gauged
from steelyard.model.trial import TrialRecord
from steelyard.report.tables.generic import Cell, ShownColumn, Table

NAME = "node-limits"
PERIOD = "limit_cpu_period_ms"
THROTTLED = "cpu_throttled_percent_mean"
UNITS = {
    "cpus": ("processors", "cores"),
    "memory_mb": ("memory", "MiB"),
    "memory_and_swap_mb": ("memory and swap", "MiB"),
    "machine_memory_mb": ("memory of its machine", "MiB"),
    "disk_read_mb_per_s": ("disk, reading", "MB/s"),
    "disk_write_mb_per_s": ("disk, writing", "MB/s"),
    "disk_read_ops_per_s": ("disk, read operations", "operations/s"),
    "disk_write_ops_per_s": ("disk, write operations", "operations/s"),
    SPEED: ("speed of a core", "million rounds/s"),
}


def node_limits(
    of_profiles: Sequence[tuple[str, Gauged]], facts: Mapping[str, Mapping[str, str]], records: Sequence[TrialRecord]
) -> Table | None:
    """One row for each profile, limit and number asked, over all nodes, starts and both moments; None without any.
    `of_profiles`: what was measured, with the profile of the start; `facts`: of nodes, for the quota's period;
    `records`: for how often it throttled."""
    gaugings, names = [gauged for _, gauged in of_profiles], list(dict.fromkeys(name for name, _ in of_profiles))
    several = len(names) > 1
    rows = tuple(
        (*((Cell(name or NONE),) if several else ()), *_row(limit))
        for name in names
        for limit in limits_of([gauged for own, gauged in of_profiles if own == name])
    )
    if not rows:
        return None
    columns = (
        *((ShownColumn("profile", numeric=False, term="profile of a node"),) if several else ()),
        ShownColumn("limit", numeric=False, term="limit of a node"),
        ShownColumn("unit", numeric=False, term="limit of a node"),
        ShownColumn("asked", term="asked of a node"),
        ShownColumn("measured", term="measured on a node"),
        ShownColumn("least", term="measured on a node"),
        ShownColumn("most", term="measured on a node"),
        ShownColumn("n", term="measured on a node"),
        ShownColumn("odd nodes", numeric=False, term="odd node"),
    )
    caption = (
        "Limits of the database nodes, asked and measured: before each start and after its last trial, one node after "
        "another, while no server of the study ran. What other programs of the machine took meanwhile is missing from "
        f"the number. A node stands out if it is off by more than {percent(TOLERANCE)}."
    )
    problems = {f"{node}: {problem}" for gauged in gaugings for node, problem in gauged.problems.items()}
    more = f" Not measured: {'; '.join(sorted(problems))}." if problems else ""
    more += _without_a_number(gaugings)
    return Table(NAME, caption + _stretched(records) + _quota(facts, records) + more, columns, rows)


def _without_a_number(gaugings: Sequence[Gauged]) -> str:
    """Limits of which no node of a start has a number, as of memory where others had it; empty without any."""
    done = [gauged for gauged in gaugings if gauged.measured]
    names = []
    for limit in dict.fromkeys(limit for gauged in done for limit in gauged.asked):
        asked = [gauged for gauged in done if limit in gauged.asked]
        lacking = [gauged for gauged in asked if not any(limit in values for values in gauged.measured.values())]
        some = "" if len(lacking) == len(asked) else f" ({len(lacking)} of {len(asked)} times)"
        names += [f"{UNITS.get(limit, (limit, ''))[0]}{some}"] if lacking else []
    why = "The machine had too little left to reach the limit, or did not say what it has."
    return f" Without a number: {listed(names)}. {why}" if names else ""


def _stretched(records: Sequence[TrialRecord]) -> str:
    """By what the limits of dilated trials were divided; empty without any."""
    dilations = sorted({record.settings.node.dilation for record in records} - {1.0})
    if not dilations:
        return ""
    divided = listed([f"{k:g}" for k in dilations], "or")
    return f" They are those in force, by the clock: what the study asks for, divided by its dilation of {divided}."


def _quota(facts: Mapping[str, Mapping[str, str]], records: Sequence[TrialRecord]) -> str:
    """The period of the quotas and how often nodes used theirs up; empty without one."""
    periods = sorted({known[PERIOD] for known in facts.values() if PERIOD in known})
    shares = [share for record in records if (share := record.measures.get(THROTTLED)) is not None]
    if not periods:
        return ""
    sentence = f" The period of a quota is {listed(periods)} ms"
    if not shares:
        return f"{sentence}."
    how = f"in {_short(statistics.median(shares))}% of its periods a node used it up and waited"
    return f"{sentence}; {how} (median of {count(len(shares), 'attempt')})."


def _row(limit: GaugedLimit) -> tuple[Cell, ...]:
    name, unit = UNITS.get(limit.limit, (limit.limit, ""))
    values = [reading.value for reading in limit.readings]
    numbers = [limit.asked, limit.median, min(values), max(values)]
    by_node: dict[str, list[float]] = {}
    for reading in limit.odd:
        by_node.setdefault(reading.node, []).append(reading.value)
    odd = listed([f"{node} ({', '.join(map(_short, its_values))})" for node, its_values in sorted(by_node.items())])
    return (
        Cell(name),
        Cell(unit),
        *(Cell(NONE if value is None else _short(value), raw=f"{value or ''}") for value in numbers),
        Cell(str(len(values))),
        Cell(odd or "none", tone="long"),
    )


def _short(value: float) -> str:
    return number(value, digits=3, trim=True)
