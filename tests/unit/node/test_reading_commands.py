"""Reading commands run at idle priority and leave their processor time for a study that is measured meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from steelyard.node import reading_commands
from steelyard.node.processor import RunningProgram, census, start_ticks
from steelyard.node.reading_commands import process_ids, taken_s, times_s

BUSY = """
import os, pathlib, sys, time
from steelyard.node.reading_commands import recorded
with recorded("status", pathlib.Path(sys.argv[1])):
    print(os.sched_getscheduler(0) == os.SCHED_IDLE, flush=True)
    begun = time.process_time()
    while time.process_time() < begun + 0.2:
        pass
    sys.stdin.read()
"""


def test_a_command_is_known_while_it_runs_and_after_its_end(tmp_path: Path) -> None:
    before = times_s(tmp_path, census())
    stack = ExitStack()
    stack.enter_context(reading_commands.session(tmp_path))
    command = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert command.stdout is not None
        assert command.stdout.readline() == "True\n", "idle priority"
        programs = census()
        assert process_ids(tmp_path, programs) == {command.pid}
        running = times_s(tmp_path, programs)
        assert list(running) == [f"{command.pid}.{start_ticks(command.pid)}.status"]
        command.communicate("", timeout=60)
    finally:
        stack.close()
        command.kill()
        command.wait()
    ended = times_s(tmp_path, census())
    assert ended.keys() == running.keys()
    assert taken_s(before, ended) >= 0.2
    assert taken_s(running, ended) <= taken_s(before, ended)
    assert process_ids(tmp_path, census()) == frozenset()


def test_what_a_command_started_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "10.5.serve").touch()
    programs = {
        (1, 1): RunningProgram("init", 9.0, 0),
        (10, 5): RunningProgram("serve", 1.0, 1),
        (11, 6): RunningProgram("report", 2.0, 10),
    }
    assert process_ids(tmp_path, programs) == {10, 11}
    reused = {(10, 7): RunningProgram("another", 1.0, 1)}
    assert process_ids(tmp_path, reused) == frozenset(), "a process id that was used again"


def test_a_command_that_a_recorded_one_waits_for_has_no_record(tmp_path: Path) -> None:
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / f"{os.getppid()}.5.serve").touch()
    with reading_commands.session(tmp_path), reading_commands.recorded("report", tmp_path, lambda: True):
        assert [path.name for path in (tmp_path / "readers").iterdir()] == [f"{os.getppid()}.5.serve"]


@pytest.mark.parametrize("able", [False, True])
def test_a_command_runs_where_it_cannot_be_recorded(tmp_path: Path, able: bool) -> None:
    state = tmp_path / "state"
    state.write_text("a file where the folder should be")
    with reading_commands.session(state), reading_commands.recorded("report", state, lambda: able):
        assert times_s(state, census()) == {}


def test_old_records_are_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "readers"
    folder.mkdir()
    old_s = time.time() - 2 * reading_commands.KEPT_S
    living = f"{os.getpid()}.{start_ticks(os.getpid())}.serve"
    for name in ("999999.5.status.120", "999998.5.report", living, "note"):
        (folder / name).touch()
        os.utime(folder / name, (old_s, old_s))
    (folder / "999997.5.status.120").touch()
    with reading_commands.session(tmp_path), reading_commands.recorded("status", tmp_path, lambda: True):
        pass
    kept = {path.name.rsplit(".", 1)[0] if path.name.count(".") == 3 else path.name for path in folder.iterdir()}
    assert "999999.5.status" not in kept
    assert "999998.5.report" not in kept
    assert {"999997.5.status", living} <= kept


@pytest.mark.parametrize(("command", "known"), [("report", False), ("serve", True)])
def test_without_a_study_only_what_lasts_has_a_record_and_nothing_is_at_idle_priority(
    tmp_path: Path, command: str, known: bool
) -> None:
    asked: list[None] = []
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "999999.5").touch()
    with reading_commands.recorded(command, tmp_path, lambda: asked.append(None) or True):
        assert bool(times_s(tmp_path, census())) == known, "what a killed study left does not count"
    assert asked == []


def test_a_study_is_announced_while_it_lasts(tmp_path: Path) -> None:
    assert not reading_commands.measured_now(tmp_path)
    with reading_commands.session(tmp_path):
        assert reading_commands.measured_now(tmp_path)
    assert not reading_commands.measured_now(tmp_path)


def test_while_a_study_waits_for_a_quiet_machine_nothing_is_at_idle_priority(tmp_path: Path) -> None:
    with reading_commands.session(tmp_path) as session:
        session.waits(True)
        assert reading_commands.in_progress(tmp_path) == {os.getpid(): False}
        with reading_commands.recorded("status", tmp_path, lambda: pytest.fail("nothing is measured")):
            assert times_s(tmp_path, census()), "but it has a record: it is the laboratory's own"
        session.waits(False)
        assert reading_commands.measured_now(tmp_path)


SERVING = """
import pathlib, subprocess, sys
from steelyard.node.reading_commands import recorded
with recorded("serve", pathlib.Path(sys.argv[1])):
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    sys.stdin.read()
    child.kill()
    child.wait()
"""


def policy_becomes(wanted: int, *pids: int) -> bool:
    # What is idle has little of a busy machine.
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if all(os.sched_getscheduler(pid) == wanted for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.root
def test_a_command_that_lasts_is_idle_only_while_a_study_is_measured(tmp_path: Path) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", SERVING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert command.stdout is not None
        both = command.pid, int(command.stdout.readline())
        assert policy_becomes(os.SCHED_OTHER, *both)
        with reading_commands.session(tmp_path):
            assert policy_becomes(os.SCHED_IDLE, *both), "with all that it started"
            assert process_ids(tmp_path, census()) == set(both)
        assert policy_becomes(os.SCHED_OTHER, *both)
        command.communicate("", timeout=60)
    finally:
        command.kill()
        command.wait()
