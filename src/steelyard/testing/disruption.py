"""Contract tests of a disruption; authors of disruptions inherit them.

    class TestMyDisruption(DisruptionContract):
        module = "path/to/my_disruption.py"     # module name, entry point or path, as in a study
        settings = {"threads": 2}

The nodes are this machine, and their server is a process that sleeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
from pydantic import BaseModel, ValidationError

from steelyard.disruption.base import Disruption, Stage
from steelyard.field_docs import field_docs
from steelyard.leases.processes import DISRUPTIONS
from steelyard.leases.records import MARKER
from steelyard.model.activity import BEGAN, HEALED
from steelyard.node.base import Node
from steelyard.node.processor import start_ticks
from steelyard.node.tasks import to_the_end
from steelyard.plugins.find import Plugins, any_file
from steelyard.site.base import Site

FOR_S = 0.5
LATE_S = 20.0
"""On a busy machine."""
LEASE = f"{os.getpid():08x}"


class SleepingServers:
    """A system whose servers sleep. Only what a disruption may use is there."""

    name = "sleeping"
    maintenance = frozenset({"compaction", "cleanup", "repair", "flush"})

    def __init__(self) -> None:
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.maintained: list[tuple[str, str]] = []
        """Nodes and what was asked of them."""

    async def maintain(self, node: Node, task: str) -> None:
        """Note it, and take a while."""
        self.maintained.append((node.name, task))
        await asyncio.sleep(FOR_S / 2)

    async def start(self, node: Node, peers: Sequence[Node]) -> None:
        """Start the node's process, if it does not run."""
        del peers
        running = self.processes.get(node.name)
        if running is None or running.returncode is not None:
            self.processes[node.name] = await asyncio.create_subprocess_exec("sleep", "600")

    async def kill(self, node: Node) -> None:
        """End it, also if the caller is cancelled meanwhile: what is started afterwards is another process."""
        process = self.processes[node.name]

        async def ended() -> None:
            await process.wait()

        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await to_the_end(ended())

    async def stop(self, node: Node) -> None:
        """End it, as one that has nothing to write."""
        await self.kill(node)

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Its id."""
        return (self.processes[node.name].pid,)

    def healed(self, node: Node) -> bool:
        """Whether the process runs and is not stopped."""
        process = self.processes[node.name]
        if process.returncode is not None or start_ticks(process.pid) is None:
            return False
        state = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        return state != "T"


class DisruptionContract:
    """Inherit it and set `module`; everything else has a default."""

    module: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the disruption, as a study gives them."""
    least_s: ClassVar[float] = FOR_S
    """Least seconds that it lasts; fewer if it ends once something is done."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Folder of the nodes."""
        return tmp_path

    def model(self) -> type[BaseModel]:
        """The settings that the disruption takes."""
        return Plugins(trust=any_file).settings_model("disruption", self.module)

    def nodes(self, folder: Path) -> list[Node]:
        """Three nodes, of which the first two are targets."""
        mark = {MARKER: LEASE}
        return [Node(f"n{number}", "database", "127.0.0.1", (), folder, environment=mark) for number in (1, 2, 3)]

    def site(self) -> Site | None:
        """Where they are from; None: this machine."""
        return None

    def disruption(self) -> Disruption:
        """The disruption that a study with these settings would get."""
        module = Plugins(trust=any_file).find("disruption", self.module)
        disruption: Disruption = module.create(self.model().model_validate(dict(self.settings)))
        return disruption

    def held(
        self, folder: Path, for_s: float, *, given_up: bool = False
    ) -> tuple[list[tuple[str, str]], list[bool], float]:
        """Marks of two nodes that are disrupted, whether each is healed afterwards, and the time that it took; given up
        as soon as both are disrupted, or over within LATE_S."""

        async def hold() -> tuple[list[tuple[str, str]], list[bool], float]:
            system, marks, nodes = SleepingServers(), list[tuple[str, str]](), self.nodes(folder)
            loop = asyncio.get_running_loop()
            for node in nodes:
                await system.start(node, nodes)
            begun_s = loop.time()
            stage = Stage(
                system,  # type: ignore[arg-type]
                nodes[:2], nodes, for_s, lambda node, name, t_s: marks.append((node.name, name)), self.site(),
            )  # fmt: skip
            if given_up:
                async with holding(self.disruption(), stage):
                    pass
            else:
                await asyncio.wait_for(self.disruption().hold(stage), LATE_S)
            took_s, healed = loop.time() - begun_s, [system.healed(node) for node in nodes]
            for node in nodes:
                await system.kill(node)
            return marks, healed, took_s

        return asyncio.run(hold())

    def test_says_what_it_is(self) -> None:
        """A name, and whether its targets are expected not to answer."""
        disruption = self.disruption()
        assert disruption.name
        assert isinstance(disruption.takes_down, bool)

    def test_refuses_misspelt_settings(self) -> None:
        """A setting that does not exist is refused before anything starts."""
        with pytest.raises(ValidationError, match="no_such_setting"):
            self.model().model_validate({**self.settings, "no_such_setting": 1})

    def test_every_setting_can_be_a_factor_and_says_what_it_means(self) -> None:
        """Every setting is a scalar with a description."""
        docs = field_docs(self.model())
        for name, field in self.model().model_fields.items():
            assert name in docs, f"{name} has no description"
            kinds: list[Any] = [type(value) for value in get_args(field.annotation)] or [field.annotation]
            assert all(kind in (int, float, str, bool) for kind in kinds), f"{name} is no scalar"

    def test_marks_its_beginning_and_end_and_heals(self, folder: Path) -> None:
        """Each target is marked twice, in its time, and is as before afterwards."""
        marks, healed, took_s = self.held(folder, FOR_S)
        for target in ("n1", "n2"):
            assert [name for node, name in marks if node == target] == [BEGAN, HEALED]
        assert len(marks) == 4, "no other node is marked"
        assert all(healed)
        assert took_s >= self.least_s
        assert not left()

    def test_heals_if_it_is_given_up(self, folder: Path) -> None:
        """A load that ends early cancels it: nothing stays."""
        marks, healed, took_s = self.held(folder, 600.0, given_up=True)
        assert [name for _, name in marks].count(BEGAN) == 2
        assert all(healed)
        assert took_s < LATE_S
        assert not left()


@contextlib.asynccontextmanager
async def holding(disruption: Disruption, stage: Stage) -> AsyncIterator[None]:
    """Hold a disruption until the end of the block, which begins once all targets are disrupted or it has failed."""
    began, names = asyncio.Event(), set[str]()

    def mark(node: Node, name: str, t_s: float | None) -> None:
        stage.mark(node, name, t_s)
        names.add(node.name)
        if len(names) == len(stage.nodes):
            began.set()

    held, waiting = asyncio.create_task(disruption.hold(stage._replace(mark=mark))), asyncio.create_task(began.wait())
    await asyncio.wait([held, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        if held.done():
            held.result()
        yield
    finally:
        held.cancel()
        await asyncio.wait([held])


def left() -> list[Path]:
    """Records of disruptions of these nodes."""
    return sorted(DISRUPTIONS.glob(f"{LEASE}.*"))
