"""The README: its commands are understood, its targets exist, its study can be run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.plan.check import weigh
from tests.unit.cli.test_main import understood

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
LINES = [line.partition("  #")[0].strip() for kind, block in BLOCKS if not kind for line in block.splitlines()]
QUOTED = re.findall(r"`(steelyard [a-z][^`]*)`", README)
COMMANDS = [line for line in (*LINES, *QUOTED) if line.startswith("steelyard ") and line != "steelyard load"]
TARGETS = [line.split()[1] for line in LINES if line.startswith("make ")]
STUDIES = [block for kind, block in BLOCKS if kind == "toml"]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_understood(line: str) -> None:
    assert understood(line) in line.split()


def test_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"install", "quickstart", "test"} <= set(TARGETS)
    assert [name for name in TARGETS if f"\n{name}:" not in makefile] == []


def test_its_study_can_be_run(tmp_path: Path) -> None:
    (text,) = STUDIES
    study = tmp_path / "lz4.toml"
    study.write_text(text, encoding="utf-8")
    checked = weigh(study, tmp_path / "store", 1.0)
    assert (checked.missing, checked.refusals, len(checked.treatments)) == ((), (), 2)
