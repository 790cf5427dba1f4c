"""Probe processes: where they run, whose readings they give, and why one ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.events.base import Silent
from steelyard.lab.probe_processes import watched_nodes, watching
from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node.base import Node
from steelyard.probe.base import Placement, Watched, placements_of, with_way

PRINT = "import sys, time\nfor line in sys.argv[1:]:\n    print(line, flush=True)\ntime.sleep(30)"
MUTTER = "import sys, time\nprint('the port is closed', file=sys.stderr, flush=True)\ntime.sleep(30)"
GREET = "import sys, time\nprint('lost it', file=sys.stderr, flush=True)\nprint('1.0 5', flush=True)\ntime.sleep(30)"
FAIL = "import sys\nprint('1.0 5', flush=True)\nsys.exit('the meter is not plugged in')"


class Meter:
    """A probe on this machine that speaks of several nodes."""

    name = "meter"
    metrics = (Metric(name="node_power_watts", unit="watts", description="power"),)

    def __init__(self, *words: str, speaks_of: tuple[str, ...] = ("n1", "n2"), on: Node | None = None) -> None:
        self.placement = Placement(on, (sys.executable, "-c", *words), speaks_of)

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        return [self.placement]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        t_s, value = line.split()
        return [Sample(float(t_s), node, self.metrics[0].name, float(value))]


def node(name: str, folder: Path, role: str = "database") -> Node:
    return Node(name, role, "127.0.0.1", (), folder)  # type: ignore[arg-type]


async def readings_of(probe: Meter, lines: int) -> dict[tuple[str, str], list[Sample]]:
    async with watching([probe], [], Silent()) as readings:
        for _ in range(200):
            if readings.failure is not None:
                raise readings.failure
            if sum(map(len, readings.samples.values())) >= lines:
                break
            await asyncio.sleep(0.05)
        return readings.samples


def test_samples_are_filed_under_the_node_that_they_are_of() -> None:
    samples = asyncio.run(readings_of(Meter(PRINT, "n2 1.5 40", "n1 1.5 30", "n2 2.5 41"), 3))
    assert samples == {
        ("meter", "n1"): [Sample(1.5, "n1", "node_power_watts", 30.0)],
        ("meter", "n2"): [Sample(1.5, "n2", "node_power_watts", 40.0), Sample(2.5, "n2", "node_power_watts", 41.0)],
    }


def test_a_line_of_no_node_is_an_error() -> None:
    with pytest.raises(ProbeError, match=r"meter on this machine \(of n1, n2\): a line of no node.*n3"):
        asyncio.run(readings_of(Meter(PRINT, "n3 1.5 40"), 1))


def test_a_parser_that_raises_anything_ends_its_readings_with_the_cause() -> None:
    with pytest.raises(ProbeError, match=r"meter on this machine .* cannot read its own line: ValueError"):
        asyncio.run(readings_of(Meter(PRINT, "n1 not numbers at all"), 1))


def test_a_probe_that_says_nothing_is_waited_for_as_long_as_its_site_says() -> None:
    async def wait() -> None:
        async with watching([Meter(PRINT)], [], Silent(), first_reading_s=0.2):
            pass

    with pytest.raises(ProbeError, match=r"no reading within 0\.2 s, .*: meter on .*nothing on its standard") as raised:
        asyncio.run(wait())
    assert raised.value.hint.endswith("remove meter from `probes` and run again")


def test_a_silent_probe_is_cited_with_what_it_last_wrote() -> None:
    async def wait() -> None:
        async with watching([Meter(MUTTER)], [], Silent(), first_reading_s=5.0):
            pass

    with pytest.raises(ProbeError, match=r"(?m)no reading within 5 s, .*: the port is closed$"):
        asyncio.run(wait())


def test_a_probe_that_falls_silent_is_cited_with_what_it_last_wrote_and_how_to_go_on() -> None:
    async def wait() -> None:
        async with watching([Meter(GREET, speaks_of=("n1",))], [], Silent()) as readings:
            await readings.reach(100.0, 0.1)

    with pytest.raises(ProbeError, match=r"(?m)no reading for 0\.1 s after the load: meter of n1: lost it$") as raised:
        asyncio.run(wait())
    assert "remove meter from `probes`" in raised.value.hint


def test_a_probe_that_ends_says_why() -> None:
    with pytest.raises(ProbeError, match=r"ended unasked with code 1: the meter is not plugged in"):
        asyncio.run(readings_of(Meter(FAIL, speaks_of=("n1",)), 99))


class Ticking(Meter):
    """A command for each node, which prints a reading every 50 ms until it is ended, or twice if it is told so."""

    script = "import sys, time\nfor t in range(int(sys.argv[1])):\n    print(t, 5, flush=True)\n    time.sleep(0.05)"

    def __init__(self, lines: int = 1000) -> None:
        self.lines = lines

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        argv = (sys.executable, "-c", self.script, str(self.lines))
        return [Placement(None, argv, (each.node.name,)) for each in watched]


def test_nodes_come_and_go(tmp_path: Path) -> None:
    async def come_and_go() -> None:
        first = [Watched(node("n1", tmp_path)), Watched(node("n2", tmp_path))]
        async with watching([Ticking()], first, Silent(), alone=True) as readings:
            await readings.processes.begin([[Watched(node("n3", tmp_path))]])
            assert readings.samples["meter", "n3"]
            readings.expect_no_more("n2")
            await readings.processes.end("n2")
            count = len(readings.samples["meter", "n2"])
            await readings.reach(readings.samples["meter", "n1"][-1].t_s + 4, 10.0)
            assert len(readings.samples["meter", "n2"]) == count
            assert readings.failure is None

    asyncio.run(come_and_go())


def test_commands_begin_again_once_a_clock_was_set(tmp_path: Path) -> None:
    """On a node or here: each goes on by the time at which it was started."""

    async def begin_again() -> None:
        watched = [Watched(node(name, tmp_path)) for name in ("n1", "n2")]
        async with watching([Ticking()], watched, Silent(), {"n1": 1.0}, alone=True) as readings:
            readings.expect_no_more("n2")
            await readings.processes.end("n2")
            (first,) = readings.process_ids
            await readings.correct_by({"n1": 1.05})
            assert readings.process_ids == [first]
            await readings.correct_by({"n1": -2.0})
            (second,) = readings.process_ids
            readings.corrected = replace(readings.corrected, wall_s=readings.corrected.wall_s - 1)
            await readings.correct_by({"n1": -2.0})
            (third,) = readings.process_ids
            assert len({first, second, third}) == 3
            assert readings.gone == {("meter", "n2")}
            await readings.reach(readings.samples["meter", "n1"][-1].t_s, 10.0)
            assert readings.failure is None

    asyncio.run(begin_again())


class ReadFrom(Ticking):
    """The same on one node for all, which says so by its value."""

    script = "import os, time\nwhile True:\n    print(1.5, os.environ['READ_ON'], flush=True)\n    time.sleep(0.05)"

    def __init__(self, on: str) -> None:
        super().__init__()
        self.on = on

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        return [replace(one, on_named=self.on) for one in super().placements(watched, interval_s)]


def test_a_node_that_joins_is_read_from_the_node_that_is_named_for_all(tmp_path: Path) -> None:
    async def join(reader: str) -> dict[str, set[float]]:
        reads = replace(node("l1", tmp_path, "load"), prefix=("env", "READ_ON=7"))
        first = [Watched(node("n1", tmp_path)), Watched(reads)]
        async with watching([ReadFrom(reader)], first, Silent(), alone=True) as readings:
            await readings.processes.begin([[Watched(node("n2", tmp_path))]])
            return {name: {one.value for one in samples} for (_, name), samples in readings.samples.items()}

    assert asyncio.run(join("l1")) == {"n1": {7.0}, "l1": {7.0}, "n2": {7.0}}
    with pytest.raises(ProbeError, match="no node l9 can run a command of the probe meter; nodes: n1, l1"):
        asyncio.run(join("l9"))


def test_a_probe_of_a_node_that_leaves_may_end_by_itself(tmp_path: Path) -> None:
    async def leave() -> None:
        async with watching([Ticking(lines=2)], [Watched(node("n1", tmp_path))], Silent(), alone=True) as readings:
            readings.expect_no_more("n1")
            await asyncio.sleep(0.5)
            assert readings.failure is None

    asyncio.run(leave())


def test_a_command_that_reads_all_nodes_runs_once_also_where_nodes_are_read_alone(tmp_path: Path) -> None:
    async def run() -> None:
        first = [Watched(node("n1", tmp_path)), Watched(node("n2", tmp_path))]
        async with watching([Meter(PRINT, "n1 1.5 30", "n2 1.5 40")], first, Silent(), alone=True) as readings:
            assert len(readings.process_ids) == 1

    asyncio.run(run())


class Everywhere:
    """A probe with one command on each node."""

    name = "everywhere"
    metrics = Meter.metrics

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        return ["read", node.name, f"{interval_s:g}", *map(str, process_ids)]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        return ()


class Watching:
    """A system with a way in."""

    def ways(self, node: Node) -> dict[str, str]:
        return {"cql": f"{node.address}:9042"}

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        return (17,)


def test_a_command_on_every_node_is_placed_on_every_node(tmp_path: Path) -> None:
    nodes = [node("n1", tmp_path), node("l1", tmp_path, "load")]
    watched = asyncio.run(watched_nodes(Watching(), nodes))  # type: ignore[arg-type]
    assert [(each.process_ids, dict(each.ways)) for each in watched] == [((17,), {"cql": "127.0.0.1:9042"}), ((), {})]
    first, second = placements_of(Everywhere(), watched, 1.0)
    assert first == Placement(nodes[0], ("read", "n1", "1", "17"), ("n1",))
    assert second == Placement(nodes[1], ("read", "l1", "1"), ("l1",))


def test_a_way_that_no_node_offers_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    watched = [Watched(node("n1", tmp_path), (), {"cql": "127.0.0.1:9042"}), Watched(node("l1", tmp_path, "load"))]
    assert with_way(watched, "cql", "mine") == (watched[0],)
    with pytest.raises(ProbeError, match="the way 'jmx'; this system offers only cql"):
        with_way(watched, "jmx", "mine")


def test_a_probe_without_commands_is_an_error() -> None:
    with pytest.raises(ProbeError, match="everywhere finds nothing to read"):
        placements_of(Everywhere(), [], 1.0)
