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


def say(tmp_path: Path, name: str) -> tuple[int, str]:
    found = printed(lambda: setup(name))
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
    assert lines[2].startswith("  systems: cassandra, ")
    assert "  load generators: cassandra-stress, latte" in lines


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
