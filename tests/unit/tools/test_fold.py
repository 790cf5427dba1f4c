"""Output of the set-up's commands: folded to a line, whole in a log, named when a command fails."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from tools import fold


def folded(tmp_path: Path, script: str, *, moving: bool = False, silent_s: float = 60.0) -> tuple[int, str]:
    out = io.StringIO()
    argv = ["sh", "-c", script]
    code = fold.fold("Making it", argv, out, moving=moving, logs=tmp_path, beat_s=0.02, silent_s=silent_s)
    return code, out.getvalue()


def test_what_succeeds_takes_two_lines_and_leaves_its_output(tmp_path: Path) -> None:
    code, text = folded(tmp_path, "echo one; echo two >&2")
    assert code == 0
    first, last = text.splitlines()
    assert first == f"Making it: output in {tmp_path / 'making-it.log'}"
    assert re.fullmatch(r"Making it: done in \d s", last)
    assert (tmp_path / "making-it.log").read_text().splitlines()[1:] == ["one", "two"]


def test_what_fails_shows_its_last_lines_and_names_the_log(tmp_path: Path) -> None:
    code, text = folded(tmp_path, "seq 100; exit 7")
    assert code == 7
    lines = text.splitlines()
    assert re.match(r"Making it: failed after \d s with exit code 7", lines[1])
    assert lines[2:-1] == [f"  {number}" for number in range(81, 101)]
    assert lines[-1] == f"the whole output: {tmp_path / 'making-it.log'}"


def test_a_line_moves_at_a_terminal_and_has_the_newest_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    code, text = folded(tmp_path, "printf '\\033[32mCompiling\\033[0m x\\n'; sleep 0.3", moving=True)
    assert code == 0
    shown = text.split(fold.CLEAR)
    assert any(line.endswith("Making it: 0 s  Compiling x") for line in shown)
    assert all(len(line) < 60 for line in shown)
    assert text.count("\n") == 1


def test_elsewhere_no_silence_is_long(tmp_path: Path) -> None:
    _, text = folded(tmp_path, "echo Compiling x; sleep 0.5", silent_s=0.1)
    assert 2 <= len(re.findall(r"  Making it: \d s  Compiling x", text)) <= 6


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    out = io.StringIO()
    assert fold.fold("Making it", ["no-such-program-here"], out, moving=True, logs=tmp_path) == 127
    assert "No such file" in out.getvalue()
