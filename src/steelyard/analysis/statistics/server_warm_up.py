"""Server warm-up of each start: how long it took, and what was not reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.row import Column, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import count, listed, number
from steelyard.model.trial import TrialRecord

MOST_NAMED = 2


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
        yield (
            f"In {len(refused)} of {count(len(rows), 'start')}{_sizes(refused, rows)} the servers were not warmed up: "
            f"{_reasons(refused)}. {unfair}."
        )
    if ended:
        longest_s = number(max(row.seconds for row in ended), digits=2)
        yield (
            f"In {len(ended)} of {count(len(rows), 'start')}{_sizes(ended, rows)} the servers were not warm at the end "
            f"of their server warm-up, after up to {longest_s} s: {_reasons(ended)}. {unfair}; a longer "
            "server_warm_up.deadline_s helps."
        )


def _sizes(cold: Sequence[WarmedStart], rows: Sequence[WarmedStart]) -> str:
    """Size of the cold starts, if sizes differ: `, all with 2 nodes,`."""
    if len({row.nodes for row in rows}) < 2:
        return ""
    sizes = sorted({row.nodes for row in cold})
    if len(sizes) == 1:
        each = {1: "", 2: "both "}.get(len(cold), "all ")
        return f", {each}with {count(sizes[0], 'node')},"
    return f", with {listed([str(size) for size in sizes])} nodes,"


def _reasons(rows: Sequence[WarmedStart]) -> str:
    """The first different reasons of these starts."""
    reasons = list(dict.fromkeys(row.left for row in rows))
    return "; ".join(reasons[:MOST_NAMED]) + ("; and so on" if len(reasons) > MOST_NAMED else "")


STATISTIC = Statistic(
    name="server_warm_up",
    row=WarmedStart,
    title="Server warm-up of each start",
    section=Section.VALIDITY,
    compute=lambda context: warmed_starts(context.records),
    order=24,
    of_records=True,
)
