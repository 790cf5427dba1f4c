"""The benchmarks run, at sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from math import isfinite

import pytest

from tests.e2e.laboratory import ROOT

pytestmark = pytest.mark.agent


def test_the_instrument_is_measured() -> None:
    argv = [sys.executable, str(ROOT / "benchmarks" / "instrument.py"), "--tiny"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["errors"] for row in rows if "errors" in row] == [0] * 5
    assert rows[-1]["cpu % of a core"] >= 0


def test_the_comparison_with_other_tools_runs() -> None:
    argv = [sys.executable, str(ROOT / "benchmarks" / "side_by_side.py"), "--tiny", "--parts", "null"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ours = [row for row in found["null server"] if row["tool"] == "steelyard"]
    assert [row["what"].split(",")[0] for row in ours] == ["read", "write", "2000 reads a second"]
    # A difference of two tiny runs, which may be 0 or less.
    assert all(isfinite(row["client cpu us/op"]) and isfinite(row["RSS MB"]) for row in ours)
