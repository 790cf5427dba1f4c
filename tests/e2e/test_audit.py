"""The commands as a person types them: the shipped tables, a table of one's own, and a wrong one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

STEELYARD = Path(sys.executable).parent / "steelyard"
TIMEOUT_S = 120


def call(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(STEELYARD), *argv], cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_reference_then_audit(tmp_path: Path) -> None:
    listed = call("reference", "list", "--json", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert len(json.loads(listed.stdout)) == 10
    shown = call("reference", "show", "ec2_effect_size", cwd=tmp_path)
    assert "2.34" in shown.stdout
    assert "Srinadhuni" in shown.stdout
    found = call("audit", "srinadhuni2018", cwd=tmp_path)
    assert found.returncode == 1
    assert "Cohen's d reported 2.34; should be 0.3344 to 1.007" in found.stdout
    data = json.loads(call("audit", "all", "--json", cwd=tmp_path).stdout)
    assert len(data["findings"]) == 6


def test_a_file_that_is_right_then_changed_then_broken(tmp_path: Path) -> None:
    rows = "nodes,n,mean,sd,min,max\n1,21,4.6e+04,1.1e+03,4.3e+04,4.8e+04\n"
    path = tmp_path / "mine.csv"
    path.write_text(rows)
    right = call("audit", "mine.csv", "--digits", "2", "--count", "21", cwd=tmp_path)
    assert (right.returncode, right.stderr) == (0, "")
    assert "0 contradictions" in right.stdout
    path.write_text(rows.replace("1.1e+03", "6.1e+03"))
    changed = call("audit", "mine.csv", "--digits", "2", cwd=tmp_path)
    assert changed.returncode == 1
    assert "sd 6.1e+03; should be" in changed.stdout
    path.write_text("nodes,n,mean,sd\n1,21,4.6e+04,1.1e+03\n")
    silent = call("audit", "mine.csv", cwd=tmp_path)
    assert (silent.returncode, silent.stderr) == (4, "")
    assert "nothing was checked" in silent.stdout
    assert "column 'sd': no other number of its row bounds it" in " ".join(silent.stdout.split())
    path.write_text(rows.replace("1.1e+03", "1,1"))
    broken = call("audit", "mine.csv", cwd=tmp_path)
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "mine.csv:2: 7 fields where the heading has 6" in broken.stderr
