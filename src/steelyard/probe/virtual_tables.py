"""Virtual tables of a database node, as probes read them: `steelyard-agent cql --every` asks, and prints the answers.

The agent asks once per interval over one connection per node, and puts increases per second in the place of counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Sample
from steelyard.node import agent
from steelyard.probe.base import Placement, Watched, client_of, with_way

ANSWER_TIMEOUT_S: Final = 5.0
"""Longest wait for one answer; a server that pauses for longer loses the connection, and gets another."""
Row = Mapping[str, Any]
Values = Callable[[Sequence[Row]], Iterator[tuple[str, float]]]
"""Metrics and their values in the rows of one answer."""


def asking(
    probe: str, way: str, watched: Sequence[Watched], interval_s: float, words: Sequence[str]
) -> list[Placement]:
    """The commands of a probe, one for each node that offers the way in; `words`: further options, and the statements.
    Raises ProbeError if no node offers it."""
    options = ("--every", f"{interval_s:g}", "--timeout-s", f"{ANSWER_TIMEOUT_S:g}", *words)
    return [
        Placement(
            on=(on := client_of(each, watched)),
            argv=(agent.on(on), "cql", "--contact", each.ways[way], *options),
            speaks_of=(each.node.name,),
            asks_cluster=True,
        )
        for each in with_way(watched, way, probe)
    ]


def samples(probe: str, questions: Sequence[Values], node: str, line: bytes) -> list[Sample]:
    """Samples of one round of answers, one to each question; none of a connection that was opened or lost. Pure. Raises
    ProbeError on any other line."""
    try:
        record = json.loads(line)
        t_s = float(record["t_s"])
        if record.get("connected") or "lost" in record:
            return []
        rows = [_rows(answer) for answer in record["answers"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProbeError(f"{node}: not a line of the probe {probe}: {line[:200]!r}") from error
    if len(rows) != len(questions):
        raise ProbeError(f"{node}: {len(rows)} answers to {len(questions)} questions of the probe {probe}")
    return [
        Sample(t_s, node, metric, value)
        for values, answer in zip(questions, rows, strict=True)
        if answer is not None
        for metric, value in values(answer)
    ]


def _rows(answer: Mapping[str, Any] | None) -> list[Row] | None:
    if answer is None:
        return None
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
