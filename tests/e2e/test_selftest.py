"""What the laboratory knows about itself: the coordinated-omission proof, calibration, the mark that it leads to."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from steelyard.model.calibration import Calibration
from steelyard.node.calibration import path_in
from steelyard.selftest.bench import BENCHES
from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

pytestmark = pytest.mark.agent

UNMOVED_MS = 20.0


def ours(laboratory: Laboratory) -> dict[str, str]:
    """Processes that carry the test's state folder in their environment: id to command line and state."""
    marker = f"STEELYARD_STATE={laboratory.folder / 'state'}".encode()
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
                found[process.name] = f"{state} {words}"
        except OSError:
            continue
    return found


@pytest.mark.quiet
@pytest.mark.parametrize("protocol", BENCHES)
def test_the_stall_proof_holds(laboratory: Laboratory, protocol: str) -> None:
    """The whole of it in 10 s: 20,000 of 20,000, p99 within 3% of the truth, service time unmoved."""
    sizes = ("--seconds", "10", "--rate", "2000", "--protocol", protocol)
    done = laboratory.call("selftest", "stall", *sizes, "--json", timeout_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["passed"]
    assert (found["due"], found["sent"], found["answered"], found["errors"]) == (20_000, 20_000, 20_000, 0)
    truth_ms = found["stall_ms"] - 0.01 * 10_000
    assert found["truth_ms_p99"] == pytest.approx(truth_ms)
    assert abs(found["response_ms_p99"] / truth_ms - 1) <= 0.03
    assert abs(found["service_ms_p99"] - found["service_ms_p99_without"]) < UNMOVED_MS
    assert found["closed_sent"] < 18_500, "a closed loop leaves out what was due during the stall"
    assert found["closed_ms_p99"] < found["truth_ms_p99"] / 10
    assert "stopped" in done.stderr, "seconds are printed as they pass"
    assert ours(laboratory) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_stall_leaves_no_stopped_process(laboratory: Laboratory, number: int) -> None:
    process = laboratory.start("selftest", "stall", "--stall", "20", "--seconds", "30")
    deadline = time.monotonic() + 30
    while not any(line.startswith("T") and " sim " in line for line in ours(laboratory).values()):
        assert time.monotonic() < deadline, "the server was never stopped"
        time.sleep(0.1)
    process.send_signal(number)
    assert process.wait(30) == 130
    process.communicate()
    assert ours(laboratory) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stall", "0.2"), "--stall"),
        (("--rate", "100"), "--rate"),
        (("--seconds", "4", "--rate", "10000"), "--seconds"),
    ],
)
def test_sizes_that_prove_nothing_are_refused(laboratory: Laboratory, options: tuple[str, ...], said: str) -> None:
    done = laboratory.call("selftest", "stall", *options, timeout_s=30)
    assert done.returncode == 2
    assert said in done.stderr
    assert "too low to prove anything" in done.stderr


@pytest.mark.parametrize("words", [("calibrate",), ("selftest", "stall")])
def test_a_protocol_without_a_server_is_refused(laboratory: Laboratory, words: tuple[str, ...]) -> None:
    done = laboratory.call(*words, "--protocol", "smtp", timeout_s=30)
    assert done.returncode == 2
    assert "one of cql, resp, http, etcd" in done.stderr


@pytest.mark.parametrize("protocol", BENCHES)
def test_calibration_is_kept_and_shown(laboratory: Laboratory, protocol: str) -> None:
    done = laboratory.call("calibrate", "--seconds", "5", "--protocol", protocol, "--json", timeout_s=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    path = path_in(laboratory.folder / "state", protocol)
    kept = Calibration.model_validate_json(path.read_text())
    assert kept.optimised
    kinds = [(kind, in_flight) for kind in BENCHES[protocol].loads for in_flight in (64, 512)]
    assert [(one.kind, one.in_flight) for one in kept.ceilings] == kinds
    assert kept.protocol == protocol
    assert [row["per_s"] for row in said["ceilings"]] == [one.per_s for one in kept.ceilings]
    assert all(one.per_s >= one.measured_per_s > 1_000 for one in kept.ceilings)
    assert kept.slip.operations == pytest.approx(2_000 * 0.25 * 5, rel=0.01)
    assert 1e6 < kept.memory_bytes < 1e9
    assert ours(laboratory) == {}
    looked = json.loads(laboratory.call("doctor", "--json").stdout)
    (engine,) = [finding for finding in looked if finding["name"] == "load engine"]
    assert f"{protocol}: " in engine["found"]
    assert "reads of 1 KB" in engine["found"]
    path.write_text(kept.model_copy(update={"agent": "0.1.0 another"}).model_dump_json())
    looked = json.loads(laboratory.call("doctor", "--json").stdout)
    (engine,) = [finding for finding in looked if finding["name"] == "load engine"]
    assert engine["state"] == "poor"
    assert "another build of the agent" in engine["found"]


def test_without_an_agent_it_says_where_it_looked(laboratory: Laboratory, tmp_path: Path) -> None:
    """The interpreter is called without its folder's agent: from a copy of the environment's path."""
    lost = {**laboratory.environment, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    code = (
        "import sys; from steelyard.node import agent; agent.candidates = lambda: ();"
        "from steelyard.cli.main import main; sys.argv = ['steelyard', 'calibrate']; main()"
    )
    argv = [laboratory.argv()[0].replace("/steelyard", "/python"), "-c", code]
    done = subprocess.run(argv, env=lost, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "no steelyard-agent found" in done.stderr


BOUND = """
[study]
name = "bound"
question = "is a trial near the generator's ceiling marked?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 1000
contention = 0
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 300
[design]
starts = 1
trials = 1
[limits]
steal_fraction = 1
background_cpu_fraction = 1
"""


def test_a_trial_near_the_ceiling_is_marked_and_not_repeated(laboratory: Laboratory, tmp_path: Path) -> None:
    """The calibration is lowered by hand: what then is near it is a slow trial."""
    assert laboratory.call("calibrate", "--seconds", "5", timeout_s=120).returncode == 0
    path = path_in(laboratory.folder / "state", "cql")
    real = Calibration.model_validate_json(path.read_text())
    low = tuple(
        one.model_copy(update={"measured_per_s": 1_000.0, "busiest_thread_fraction": 1.0}) for one in real.ceilings
    )
    study = tmp_path / "bound.toml"
    study.write_text(BOUND)
    path.write_text(real.model_copy(update={"ceilings": low}).model_dump_json())
    assert laboratory.run(study).returncode == 1
    (record,) = Store(laboratory.store / "bound").trials()
    assert [reason.kind.name for reason in record.verdict.reasons] == ["GENERATOR_BOUND"]
    assert not any("ceiling is unknown" in note for note in record.verdict.notes)
