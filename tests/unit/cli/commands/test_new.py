"""`steelyard new` and `steelyard schema`: what they ask and print."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.commands.schema import schema
from steelyard.study import read
from steelyard.study.new import QUESTIONS
from tests.unit.cli.screen import printed

ROOT = Path(__file__).parents[4]
NEW = (sys.executable, "-m", "steelyard", "new", "first")
TIMEOUT_S = 60


def test_the_help_names_every_question() -> None:
    shown = subprocess.run(
        (*NEW[:-1], "--help"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert [question for question in QUESTIONS if f"{question}:" not in shown.stdout] == []


def test_without_a_terminal_it_is_a_study_of_sizes(tmp_path: Path) -> None:
    shown = subprocess.run(
        NEW, cwd=tmp_path, input="3\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert shown.stdout == "first.toml\n"
    assert read(tmp_path / "first.toml").factors == {"nodes": (1, 2, 3)}
    lines = [line.split() for line in shown.stderr.splitlines() if line.startswith("  steelyard")]
    assert [words[1] for words in lines] == ["check", "run", "report"]


@pytest.mark.parametrize("answer", ["3", "search"])
def test_at_a_terminal_it_asks(answer: str, tmp_path: Path) -> None:
    mine, its = pty.openpty()
    os.write(mine, f"{answer}\n".encode())
    with os.fdopen(mine, "rb", buffering=0) as screen, os.fdopen(its) as terminal:
        words = (*NEW, "--system", "simulated")
        subprocess.run(
            words, cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal, timeout=TIMEOUT_S, check=True
        )
        lines = screen.read(65_536).decode().splitlines()
    choices = [line for line in lines if line.endswith("?")]
    assert [line.split()[1] for line in choices] == ["scale", "compare", "search", "gate", "grow", "repeat"]
    assert all(len(line) <= 80 for line in choices)
    study = read(tmp_path / "first.toml")
    assert (study.load.schedule, study.system.name) == ("search", "simulated")


def test_the_schema_is_that_of_the_checkout() -> None:
    shown = printed(schema)
    assert (shown.code, shown.out) == (0, (ROOT / "schema" / "study.schema.json").read_text(encoding="utf-8"))
    assert json.loads(shown.out)["title"] == "Steelyard study"
