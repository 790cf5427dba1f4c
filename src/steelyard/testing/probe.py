"""Contract tests of a probe; authors of probes inherit them.

    class TestMyProbe(ProbeContract):
        module = "path/to/my_probe.py"          # module name, entry point or path, as in a study
        lines = (b"1790000000.5 83",)           # lines of its command that show every metric
        silent = (b"# time charge",)            # lines of its command without a reading

The commands are run for real on this machine, for a few readings. A probe that reads a system through a way in gets one
from `ways`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Sample
from steelyard.node.base import Node
from steelyard.node.command import end, spawn
from steelyard.plugins.find import Plugins, any_file
from steelyard.plugins.parts import Parts
from steelyard.probe.base import OnEveryNode, Placement, Probe, Watched, placements_of

INTERVAL_S = 0.3
READINGS = 6
READ_TIMEOUT_S = 30.0
TOLERANCE = 2.0
"""Factor by which the median gap between readings may differ from the interval on a busy machine."""
CLOCK_TOLERANCE_S = 2.0
PREFIXES = ("machine_", "node_")


class ProbeContract:
    """Inherit it and set `module` and `lines`; everything else has a default."""

    module: ClassVar[str]
    lines: ClassVar[Sequence[bytes]]
    """Lines of the command that show every metric at least once."""
    silent: ClassVar[Sequence[bytes]] = ()
    """Lines of the command without a reading: a greeting, a header, a gap."""
    wrong: ClassVar[Sequence[bytes]] = (b"no such line\n", b"\xff\xfe\x00\n", b"{\n")
    """Lines that the command never prints."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the probe, as a study gives them."""

    def probe(self) -> Probe:
        """The probe that a study with this name would get."""
        return Parts(Plugins(trust=any_file)).probe(self.module, self.settings)

    def node(self, tmp_path: Path) -> Node:
        """An empty node on this machine."""
        return Node("n1", "database", "127.0.0.1", (), tmp_path)

    def ways(self, tmp_path: Path) -> Mapping[str, str]:
        """Ways into the system on the node, for a probe that needs one."""
        return {}

    def placements(self, tmp_path: Path, interval_s: float = INTERVAL_S) -> Sequence[Placement]:
        """The commands of the probe for the node alone."""
        return placements_of(self.probe(), [Watched(self.node(tmp_path), (), self.ways(tmp_path))], interval_s)

    def test_says_what_it_reads(self) -> None:
        """Metrics have a unit, a description, and a unique name that says what they belong to."""
        probe = self.probe()
        names = [metric.name for metric in probe.metrics]
        assert probe.name
        assert names
        assert len(set(names)) == len(names)
        for metric in probe.metrics:
            assert metric.name.startswith(PREFIXES), metric.name
            assert metric.unit
            assert metric.description

    def test_its_command_is_words_and_starts_nothing(self, tmp_path: Path) -> None:
        """Each command is an argv that contains the interval and the node, and is the same every time."""
        self.ways(tmp_path)
        before, probe = sorted(tmp_path.rglob("*")), self.probe()
        if isinstance(probe, OnEveryNode):
            argv = probe.command(self.node(tmp_path), INTERVAL_S, ())
            assert not isinstance(argv, str), "a list of arguments, not a shell command"
        placements = self.placements(tmp_path)
        for placement in placements:
            assert placement.argv
            assert all(isinstance(word, str) and word for word in placement.argv)
            assert placement.speaks_of
            assert set(placement.speaks_of) <= {self.node(tmp_path).name}
        assert self.placements(tmp_path) == placements
        slower = self.placements(tmp_path, 7.0)
        assert [each.argv for each in slower] != [each.argv for each in placements], "it contains the interval"
        assert sorted(tmp_path.rglob("*")) == before, "nothing was started or written"

    def test_parsing_is_pure(self) -> None:
        """The same line gives the same samples, of the given node."""
        first, second = self.probe(), self.probe()
        for line in self.lines:
            samples = list(first.parse("n7", line))
            assert samples == list(first.parse("n7", line)) == list(second.parse("n7", line))
            assert {sample.node for sample in samples} <= {"n7"}

    def test_declares_what_it_says_and_says_what_it_declares(self) -> None:
        """The metrics of the lines are those that the probe lists."""
        probe = self.probe()
        samples = [sample for line in self.lines for sample in probe.parse("n1", line)]
        assert {sample.metric for sample in samples} == {metric.name for metric in probe.metrics}

    def test_lines_without_readings_give_none(self) -> None:
        """A gap stays a gap, not 0."""
        for line in self.silent:
            assert list(self.probe().parse("n1", line)) == [], line

    def test_refuses_lines_that_are_not_its_own(self) -> None:
        """An invalid reading is never skipped."""
        for line in self.wrong:
            with pytest.raises(ProbeError, match="n1"):
                list(self.probe().parse("n1", line))

    def test_reads_for_real(self, tmp_path: Path) -> None:
        """The command prints lines at the requested interval, stamped with the node's time, and ends when asked to."""
        probe, node = self.probe(), self.node(tmp_path)
        (placement, *_) = self.placements(tmp_path)
        begun_s = time.time()
        lines, ended = asyncio.run(_readings(probe, placement, tmp_path / "stderr"))
        assert ended, "the command did not end when asked to"
        samples = [list(probe.parse(node.name, line)) for line in lines]
        readings = [reading for reading in samples if reading]
        assert len(readings) >= READINGS
        declared = {metric.name for metric in probe.metrics}
        assert {sample.metric for reading in readings for sample in reading} <= declared
        assert all(math.isfinite(sample.value) for reading in readings for sample in reading)
        times_s = [reading[0].t_s for reading in readings]
        assert begun_s - CLOCK_TOLERANCE_S <= times_s[0]
        assert times_s[-1] <= time.time() + CLOCK_TOLERANCE_S
        gaps_s = [later - earlier for earlier, later in itertools.pairwise(times_s)]
        assert min(gaps_s) > 0
        assert INTERVAL_S / TOLERANCE <= statistics.median(gaps_s) <= INTERVAL_S * TOLERANCE


async def _readings(probe: Probe, placement: Placement, stderr: Path) -> tuple[list[bytes], bool]:
    """Lines from the running command until there are enough readings; and whether it ended when asked to."""
    pipe = asyncio.subprocess.PIPE
    process = await spawn(placement.on, placement.argv, stdout=pipe, stderr=stderr, watch=True)
    lines: list[bytes] = []
    readings = 0
    try:
        assert process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READ_TIMEOUT_S):
                async for line in process.stdout:
                    lines.append(line)
                    samples: list[Sample] = list(probe.parse(placement.speaks_of[0], line))
                    readings += bool(samples)
                    if readings >= READINGS:
                        break
    finally:
        await end(process)
    return lines, process.returncode is not None
