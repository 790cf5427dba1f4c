"""Failures beside other tests: run again alone, named, and forgiven only if they pass there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tests.again import MOST, run_again

ROOT = Path(__file__).resolve().parents[2]
HOOK = """
import pytest
from tests.again import run_again

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    run_again(session, session.config.pluginmanager.get_plugin("terminalreporter"))
"""
UNSTABLE = """
from pathlib import Path

def test_fails_once():
    mark = Path(__file__).with_name("tried")
    tried = mark.exists()
    mark.touch()
    assert tried

def test_passes():
    pass
"""
NAME = "tests/e2e/test_it.py"
WRONG = "def test_fails():\n    assert False\n"


def session(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(HOOK)
    (folder / "tests" / "e2e").mkdir(parents=True)
    (folder / NAME).write_text(text)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_what_passes_alone_is_named_and_the_run_passes(tmp_path: Path) -> None:
    done = session(tmp_path, UNSTABLE, "--numprocesses", "2")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert f"UNSTABLE, to be mended: failed beside other tests, passed alone: {NAME}::test_fails_once" in done.stdout


def test_what_fails_alone_fails_the_run(tmp_path: Path) -> None:
    done = session(tmp_path, WRONG + UNSTABLE, "--numprocesses", "2")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"run again alone: {NAME}::test_fails, {NAME}::test_fails_once" in done.stdout
    assert "UNSTABLE" not in done.stdout


@pytest.mark.parametrize(
    ("count", "several", "name"),
    [(MOST + 1, 2, NAME), (1, None, NAME), (0, 2, NAME), (1, 2, "tests/unit/test_it.py")],
    ids=["too many", "not beside others", "none", "of functions"],
)
def test_others_get_no_second_try(count: int, several: int | None, name: str) -> None:
    session, reporter = MagicMock(exitstatus=pytest.ExitCode.TESTS_FAILED), MagicMock()
    session.config.getoption.return_value = several
    reporter.stats = {"failed": [MagicMock(nodeid=f"{name}::test_{number}") for number in range(count)]}
    run_again(session, reporter)
    reporter.write_line.assert_not_called()
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED
