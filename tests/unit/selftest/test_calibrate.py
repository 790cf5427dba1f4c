"""Calibration: from the engine's records to ceilings, kept, read again, and told apart from another machine's."""

from __future__ import annotations

import io
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from steelyard.cli.commands.calibrate import as_data, draw
from steelyard.lab.parts import LabParts
from steelyard.model.calibration import Calibration, Slip
from steelyard.model.errors import EngineError, SteelyardError
from steelyard.node import agent, calibration, processor
from steelyard.node.calibration import doubts
from steelyard.selftest.calibrate import ceiling_of
from tests.unit.wire.made import done

DONE = done(operations=3_000, execution_ns=3_000_000_000, cpu_ns=6_000_000_000, busiest_thread_fraction=0.5)
MACHINE = {"cpu_model": "x", "cores": "2", "kernel": "6.1", "architecture": "y"}


def made(agent_name: str = "0.1.0 abc", **changes: Any) -> Calibration:
    base: dict[str, Any] = {
        "made_s": 1.7e9, "machine": MACHINE, "agent": agent_name, "optimised": True,
        "ceilings": (ceiling_of("read", 64, DONE),),
        "slip": Slip(rate_per_s=2000, operations=10, pacing_ms_p50=0.04, pacing_ms_p99=0.1), "memory_bytes": 8 << 20,
        "background_cpu_fraction": 0.01, "steal_fraction": 0.0,
    }  # fmt: skip
    return Calibration.model_validate({**base, **changes})


def test_a_ceiling_is_the_rate_over_the_busy_share() -> None:
    found = ceiling_of("read", 64, DONE)
    assert (found.measured_per_s, found.per_s, found.cpu_us_per_operation) == (1000.0, 2000.0, 2000.0)


def test_a_server_that_does_not_answer_everything_calibrates_nothing() -> None:
    with pytest.raises(EngineError, match="5 timeout"):
        ceiling_of("read", 64, replace(DONE, errors=5, errors_by_kind={"timeout": 5}))


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    where = calibration.path_in(tmp_path / "state", "cql")
    assert calibration.read(where) is None
    calibration.write(where, made())
    assert calibration.read(where) == made()
    where.write_text("{")
    with pytest.raises(SteelyardError, match="cannot be read"):
        calibration.read(where)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(SteelyardError, match="cannot be kept"):
        calibration.write(calibration.path_in(tmp_path / "state", "cql"), made())


def test_another_machine_or_agent_makes_it_stale() -> None:
    assert calibration.stale(made(), MACHINE, "abc") == ""
    assert "kernel" in calibration.stale(made(), {**MACHINE, "kernel": "6.2"}, "abc")
    assert "another build" in calibration.stale(made(), MACHINE, "def")


def test_the_laboratory_takes_it_for_its_own_engine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "steelyard-agent"
    program.write_text("x")
    program.chmod(0o755)
    monkeypatch.setenv(agent.OVERRIDE, str(program))
    parts = LabParts(cache_folder=tmp_path, state_folder=tmp_path)
    assert "steelyard calibrate" in parts.calibration("agent", "cql", MACHINE).why
    kept = made(f"0.1.0 {calibration.fingerprint(program)}")
    calibration.write(calibration.path_in(tmp_path, "cql"), kept)
    assert parts.calibration("agent", "cql", MACHINE).calibration == kept
    assert "steelyard calibrate --protocol resp" in parts.calibration("agent", "resp", MACHINE).why
    assert "not latte" in parts.calibration("latte", "cql", MACHINE).why
    assert "cores" in parts.calibration("agent", "cql", {**MACHINE, "cores": "4"}).why
    program.write_text("another build")
    assert "another build" in parts.calibration("agent", "cql", MACHINE).why


def test_the_table_says_from_where_on_a_trial_is_marked() -> None:
    console = Console(file=io.StringIO(), width=100)
    draw(made(), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "reads, 64 in flight" in text
    assert "generator-bound" in text
    assert as_data(made())["ceilings"][0]["per_s"] == 2000.0


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"optimised": False}, "without optimisation"),
        ({"background_cpu_fraction": 0.3}, "other programs took 30%"),
        ({"steal_fraction": 0.2}, "other guests took 20%"),
    ],
)
def test_doubts_are_told(changes: dict[str, Any], what: str) -> None:
    assert what in " ".join(doubts(made(**changes)))
    assert doubts(made()) == []


def test_processor_time_is_read_as_the_kernel_says_it() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    found = processor.machine_time("cpu  100 10 30 1000 50 1 9 20 5 0\ncpu0 1 2 3 4\n")
    seconds = (found.busy_s * ticks, found.steal_s * ticks, found.total_s * ticks)
    assert seconds == pytest.approx((150, 20, 1220))
    before, deadline = processor.process_time_s(os.getpid()), time.monotonic() + 10
    while processor.process_time_s(os.getpid()) == before:
        assert time.monotonic() < deadline
    assert processor.process_time_s(2**22 + 1) == 0.0
    assert processor.most_resident_bytes(os.getpid()) > 1e6


def test_programs_are_told_by_what_they_used_in_between() -> None:
    me = next(who for who in processor.census() if who[0] == os.getpid())
    program = processor.RunningProgram
    before = {(1, 5): program("old", 10.0), (2, 5): program("ours", 0.0), me: program("me", 0.0)}
    after = {(1, 5): program("old", 11.0), (1, 6): program("new", 3.0), (2, 5): program("ours", 9.0)}
    assert processor.busiest(before, after, 2.0, lambda pid: pid == 2) == [("new", 1.5), ("old", 0.5)]
    assert processor.has_variable(os.getpid(), "PATH", "nowhere") is False
