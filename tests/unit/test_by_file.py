"""Files that share the real node are run by one process, other files by any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOK = """
from tests.by_file import ByFile

def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)
"""
TEST = """
import os, pathlib, time

def test_it():
    {about}
    pathlib.Path(__file__).with_suffix(".worker").write_text(os.environ["PYTEST_XDIST_WORKER"])
    time.sleep(0.2)
"""


def test_files_that_ask_for_the_node_have_one_process(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "e2e"
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\naddopts = --import-mode=importlib\n")
    (tmp_path / "conftest.py").write_text(HOOK)
    for name in ("a", "b", "c", "d"):
        (folder / f"test_{name}.py").write_text(TEST.format(about="'real_node'" if name in "ad" else "''"))
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "tests"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = {path.stem: path.read_text() for path in folder.glob("*.worker")}
    assert len(workers) == 4
    assert workers["test_a"] == workers["test_d"]
    assert len(set(workers.values())) == 2
