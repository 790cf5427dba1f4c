"""`steelyard setup`: says what it did, or what is missing, and with which code."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path

import pytest
from rich.console import Console

from steelyard.cli.commands import setup as setup_command
from steelyard.cli.commands.setup import setup
from steelyard.node.fetch import Progress
from tests.unit.cli.screen import printed

SYSTEM = """
import logging
from pathlib import Path
from steelyard.model.value import Value
from steelyard.model.errors import SystemFault

class Settings(Value):
    pass

class Made:
    name, version = "made", "1"

    async def prepare(self):
        logging.getLogger("steelyard.system").info("not ours")
        if {fails}:
            raise SystemFault("no wood", "as root: apt-get install wood")

def create(settings, cache_folder):
    return Made()
"""


def say(tmp_path: Path, name: str, version: str | None = None) -> tuple[int, str]:
    found = printed(lambda: setup(name, version))
    assert found.out == ""
    return found.code, found.err


@pytest.mark.parametrize(("fails", "code", "told"), [(False, 0, "✓ made 1 is ready"), (True, 3, "error: no wood")])
def test_ready_or_not(tmp_path: Path, fails: bool, code: int, told: str) -> None:
    path = tmp_path / "made.py"
    path.write_text(SYSTEM.format(fails=fails))
    got, text = say(tmp_path, str(path))
    assert (got, told in text) == (code, True)
    assert ("apt-get install wood" in text) is fails


def test_unknown_system(tmp_path: Path) -> None:
    code, text = say(tmp_path, "casandra")
    assert code == 2
    lines = text.splitlines()
    assert lines[:2] == ["error: nothing to set up is named 'casandra'", "  did you mean 'cassandra'?"]
    assert lines[2].startswith("  systems: ")
    assert "cassandra, " in lines[2]
    assert "  load generators: cassandra-stress, httperf, latte" in lines


def test_a_version_is_that_of_a_system_that_has_one(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    versioned = SYSTEM.replace("    pass\n", '    version: str = "1"\n', 1).replace(
        "return Made()", "return Made(settings)"
    )
    made = '"made", "1"\n\n    def __init__(self, settings):\n        self.version = settings.version\n'
    path.write_text(versioned.replace('"made", "1"\n', made).format(fails=False))
    assert "✓ made 2 is ready" in say(tmp_path, str(path), "2")[1]
    for name, told in (("cassandra", "system.version = '2.2': must match"), ("latte", "--version: latte is no system")):
        code, text = say(tmp_path, name, "2.2")
        assert (code, told in text) == (2, True), text


def test_what_needs_no_setup_is_neither_accepted_nor_offered(tmp_path: Path) -> None:
    code, text = say(tmp_path, "agent")
    assert (code, "named 'agent'" in text) == (2, True)
    offered = setup_command._known("")
    assert {"cassandra", "docker", "latte"} <= set(offered)
    assert "agent" not in offered


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_moves_at_a_terminal_and_is_rare_elsewhere(terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None)
    with setup_command._spoken("steelyard.made", console):
        begun_s, logger = time.time(), logging.getLogger("steelyard.made")
        logger.info("fetching it: about 66 MB")
        for mb in range(1, 41):
            facts = {"msg": Progress(f"{mb} MB"), "levelno": logging.INFO, "created": begun_s + 0.5 + mb}
            logger.handle(logging.makeLogRecord(facts))
        logger.info("66 MB in the cache")
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    if terminal:
        assert any("· fetching it: about 66 MB" in line for line in lines)
        assert not any("· 15 MB" in line for line in lines)
    else:
        assert lines == ["· fetching it: about 66 MB", "· 15 MB", "· 30 MB", "· 66 MB in the cache"]
