"""Server warm-up of each start: how long it took, and what was not reached."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from steelyard.analysis.row import Column, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import count, listed, number
from steelyard.judging.server_warm_up import longer
from steelyard.model.trial import TrialRecord

PERCENT: Final = re.compile(r"([\d.]+)%")
PARENTHESES: Final = re.compile(r" \([^)]*\)")
"""Limits and noise, after the numbers of a reason."""


class WarmedStart(Row):
    """Server warm-up of one start."""

    start: str
    """Start of a cluster."""
    nodes: int
    """Nodes of the cluster."""
    seconds: Annotated[float, Column(unit="s")]
    """Duration of its server warm-up."""
    rounds: int
    """Rounds at high concurrency and at the study's own load."""
    operations: int
    """Operations answered in it."""
    compiler_percent: Annotated[float | None, Column(unit="% of a core")] = None
    """CPU of the busiest compiler of its nodes in the last round; none if the system does not say."""
    warm: bool
    """Whether every node was warm at the end."""
    left: str = ""
    """Conditions not reached."""


def warmed_starts(records: Sequence[TrialRecord]) -> Iterator[WarmedStart]:
    """One row for each start that was warmed up."""
    for start, record in {record.start: record for record in records}.items():
        warmth = record.server_warm_up
        if warmth is None:
            continue
        fractions = [node.compiler_fraction for node in warmth.nodes.values() if node.compiler_fraction is not None]
        yield WarmedStart(
            start=start,
            nodes=len(warmth.nodes),
            seconds=warmth.seconds,
            rounds=warmth.rounds,
            operations=warmth.operations,
            compiler_percent=100 * max(fractions) if fractions else None,
            warm=warmth.reached,
            left="; ".join(warmth.reasons),
        )


def cold_starts(rows: Sequence[WarmedStart]) -> Iterator[str]:
    """Starts whose servers were not warm before their first trial: those that could not be warmed up, then those whose
    server warm-up ended too early."""
    refused = [row for row in rows if not row.warm and not row.rounds]
    ended = [row for row in rows if not row.warm and row.rounds]
    unfair = "Colder servers look slower than they are"
    if refused:
        yield (f"In {_which(refused, rows)} the servers were not warmed up: {_reasons(refused)}. {unfair}.")
    if ended:
        longest_s = max(row.seconds for row in ended)
        yield (
            f"In {_which(ended, rows)} the servers were not warm at the end "
            f"of their server warm-up, after up to {number(longest_s, digits=2)} s: {_reasons(ended)}. {unfair}; try "
            f"{longer(longest_s)}, twice as long."
        )


def _which(cold: Sequence[WarmedStart], rows: Sequence[WarmedStart]) -> str:
    """`3 of 4 starts`; where sizes differ `2 of 3 starts with 2 nodes, all 3 starts with 4 nodes and none with 1
    node`."""
    every, of_cold = (Counter(row.nodes for row in some) for some in (rows, cold))
    if len(every) == 1:
        return f"{len(cold)} of {count(len(rows), 'start')}"
    parts = []
    for size, starts in sorted(every.items()):
        most = "the only start" if starts == 1 else f"{'both' if starts == 2 else f'all {starts}'} starts"
        some = most if of_cold[size] == starts else f"{of_cold[size]} of {starts} starts"
        parts += [f"{some} with {count(size, 'node')}"] if of_cold[size] else []
    without = [str(size) for size in sorted(every) if not of_cold[size]]
    return listed(
        [*parts, *([f"none with {listed(without, 'or')} node{'' if without == ['1'] else 's'}"] if without else [])]
    )


def _reasons(rows: Sequence[WarmedStart]) -> str:
    """The reasons of these starts; if they differ, each kind with the range of its numbers: `compilers still used 5.2
    to 102% of a core in 6 starts`."""
    distinct = list(dict.fromkeys(row.left for row in rows))
    if len(distinct) == 1:
        return distinct[0]
    kinds: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        for clause in row.left.split("; "):
            shown = PARENTHESES.sub("", clause)
            kind = shown.partition(", ")[0] if PERCENT.search(shown) else shown
            begin, _, end = PERCENT.sub("%", kind).partition("%")
            what = begin, " of a core" if end.startswith(" of a core") else ""
            kinds.setdefault(what, []).append([float(number) for number in PERCENT.findall(shown)])
    return "; ".join(
        f"{begin}{_range(numbers)}{end} in {count(len(numbers), 'start')}" for (begin, end), numbers in kinds.items()
    )


def _range(numbers: Sequence[Sequence[float]]) -> str:
    flat = sorted({one for of in numbers for one in of})
    if not flat:
        return ""
    return f"{flat[0]:g}%" if len(flat) == 1 else f"{flat[0]:g} to {flat[-1]:g}%"


STATISTIC = Statistic(
    name="server_warm_up",
    row=WarmedStart,
    title="Server warm-up of each start",
    section=Section.VALIDITY,
    compute=lambda context: warmed_starts(context.records),
    order=24,
    of_records=True,
)
