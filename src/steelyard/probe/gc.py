"""Garbage collection probe: the pauses that a Java server writes into its collector's log (`-Xlog:gc`).

Read are collectors that log their pauses under the tag `gc`: Serial, Parallel, G1, Shenandoah. ZGC logs its pauses
under `gc,phases`, which the laboratory's servers do not write. The agent follows the log (`steelyard-agent tail`) and
prints what was added, once per interval; this module reads the lines. Each pause is a sample at the instant of its end,
with its length, so that it can be compared with the second that it fell in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node import agent
from steelyard.probe.base import Placement, Watched, with_way

NAME: Final = "gc"
WAY: Final = "gc_log"
MS_PER_S: Final = 1000.0
LINE: Final = re.compile(
    r"^\[(?P<at>\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4})\].*?"
    r"GC\(\d+\) Pause (?P<what>.*) (?P<ms>[\d.,]+)ms$"
)
"""A line of a pause: time of its end, kind and cause, perhaps the heap, milliseconds."""
HEAP: Final = re.compile(r"\d+[KMG]->(?P<after>\d+)(?P<unit>[KMG])\(\d+[KMG]\)$")
BYTES: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
PAUSE: Final = "node_gc_pause_ms"


class GcProbe:
    """Probe that follows the log of the garbage collector on each database node."""

    name = NAME
    way = WAY
    metrics = (
        Metric(
            name=PAUSE,
            unit="ms",
            description="a pause of the whole server, sampled at its end: as many samples as there were pauses",
        ),
        Metric(name="node_gc_pauses_per_s", unit="pauses/s", cumulative=True, description="pauses that ended"),
        Metric(
            name="node_gc_paused_fraction",
            unit="fraction",
            cumulative=True,
            description="length of the pauses that ended since the previous sample, over the time since; above 1 after "
            "a longer pause",
        ),
        Metric(name="node_heap_after_gc_bytes", unit="bytes", description="heap in use after a pause"),
    )

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """One follower on each node whose system names a log. Raises ProbeError for a system without one."""
        return [
            Placement(
                on=each.node,
                argv=(agent.on(each.node), "tail", "--every", f"{interval_s:g}", each.ways[WAY]),
                speaks_of=(each.node.name,),
            )
            for each in with_way(watched, WAY, NAME)
        ]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Pauses of one interval, and their count and share; none while the log is missing. Raises ProbeError on any
        other line."""
        try:
            record = json.loads(line)
            t_s = float(record["t_s"])
            if record.get("missing"):
                return []
            seconds = float(record["seconds"])
            pauses = list(_pauses(node, record["lines"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error
        if seconds <= 0:
            return pauses
        lengths_ms = [sample.value for sample in pauses if sample.metric == PAUSE]
        # The time of the reading comes first and last: pauses are older.
        return [
            Sample(t_s, node, "node_gc_paused_fraction", sum(lengths_ms) / MS_PER_S / seconds),
            *pauses,
            Sample(t_s, node, "node_gc_pauses_per_s", len(lengths_ms) / seconds),
        ]


def _pauses(node: str, lines: Iterable[str]) -> Iterator[Sample]:
    """The pauses in a log. Lines of phases that run while the server works are skipped."""
    for text in lines:
        pause = LINE.match(text.rstrip())
        if pause is None:
            continue
        ended_s = datetime.strptime(pause["at"], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
        yield Sample(ended_s, node, PAUSE, float(pause["ms"].replace(",", ".")))
        if (heap := HEAP.search(pause["what"])) is not None:
            yield Sample(ended_s, node, "node_heap_after_gc_bytes", float(int(heap["after"]) * BYTES[heap["unit"]]))


def create() -> GcProbe:
    """The probe; no side effects."""
    return GcProbe()
