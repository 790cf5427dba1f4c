"""Covariates of a start: what a cluster was given, as numbers, from facts and measured links. Pure.

They complement the factors, which say what was asked for: a model of a node as memory, cores and round-trip time
takes them as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.judging.dilation import COVARIATE as DILATION
from steelyard.judging.dilation import modelled_links
from steelyard.judging.gauge import AFTER
from steelyard.judging.measures import cores_given
from steelyard.model.facts import MACHINE, of_machines, role_of
from steelyard.model.measure import MIB
from steelyard.model.plausible import number_in
from steelyard.model.trial import TrialRecord

RTT = ("rtt_ms_min", "rtt_ms_mean")
AMONG_DATABASES: Final = "databases"
"""`ends` of a link between two database nodes; one from a load node to a database node has none."""


def covariates_of(facts: Mapping[str, Mapping[str, str]], links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Covariates by name; those that were not measured, or not on every database node, are left out.

    `rtt_ms_min`, `rtt_ms_mean`: between load and database nodes, the mean over all measured links; with the prefix
    `database_` between database nodes. `link_mbit_per_s`: rate of one TCP connection, the mean over all links, and
    `link_mbit_per_s_least`, of the slowest; `link_loss_percent`: frames lost, the mean. `cores`, `memory_mb`: what a
    database node was given, its limit or all that its machine has, the mean over nodes.
    """
    values = _of_links(links)
    machines = of_machines(facts)
    databases = [known for node, known in machines.items() if role_of(node, facts) == "database"]
    databases = databases or [known for node, known in machines.items() if node == MACHINE]
    for name, given in (("cores", cores_given), ("memory_mb", memory_mb_given)):
        amounts = [amount for known in databases if (amount := given(known)) is not None]
        if amounts and len(amounts) == len(databases):
            values[name] = math.fsum(amounts) / len(amounts)
    return values


def with_links_after(
    records: Sequence[TrialRecord], links: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[TrialRecord, ...]:
    """The records with the covariates of their start's links as measured after its last trial, whose names end in
    `_after`; `links`: start to its paths. In modelled time if the record is."""
    return tuple(
        record.model_copy(update={"covariates": {**record.covariates, **_after(record, links[record.start])}})
        if record.start in links
        else record
        for record in records
    )


def _after(record: TrialRecord, links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    k = record.covariates.get(DILATION, 1.0)
    measured = covariates_of({}, links if k == 1 else modelled_links(links, k))
    return {f"{name}{AFTER}": value for name, value in measured.items()}


def _of_links(links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Covariates of the paths between nodes."""
    among = [link for link in links if link.get("ends") == AMONG_DATABASES]
    to_load = [link for link in links if link.get("ends") != AMONG_DATABASES]
    values: dict[str, float] = {}
    for prefix, paths in (("", to_load), ("database_", among)):
        for name in RTT:
            values |= _mean(f"{prefix}{name}", _numbers(paths, name))
    rates = _numbers(links, "mbit_per_s")
    values |= _mean("link_mbit_per_s", rates)
    values |= {"link_mbit_per_s_least": min(rates)} if rates else {}
    return values | _mean("link_loss_percent", _numbers(links, "loss_percent"))


def _numbers(links: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """A number of each link; empty if one of them lacks it."""
    numbers = [float(link[name]) for link in links if isinstance(link.get(name), int | float)]
    return numbers if len(numbers) == len(links) else []


def _mean(name: str, numbers: Sequence[float]) -> dict[str, float]:
    return {name: math.fsum(numbers) / len(numbers)} if numbers else {}


def memory_mb_given(facts: Mapping[str, str]) -> float | None:
    """Memory that a node was given, MiB: its limit, at most that of its machine; None if neither is known."""
    limit, machine = facts.get("limit_memory_bytes", ""), facts.get("memory_mb", "")
    given = [(number_in(limit), MIB), (number_in(machine), 1)]
    return min((number / unit for number, unit in given if number is not None and number > 0), default=None)
