"""Each kind of file is read in one format; any other number is refused, with the number, the file and what to do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import study
from steelyard.judging.noise_floor import KeptFloor
from steelyard.leases import records as lease_records
from steelyard.model.calibration import Calibration
from steelyard.model.errors import OtherFormatError, SiteError, SteelyardError, StudyError
from steelyard.node import calibration, noise_floor
from steelyard.progress import live_file
from steelyard.store import Store, layout
from steelyard.system.cassandra import _snapshots
from steelyard.wire import record as wire
from steelyard.workload import _file
from tests.unit.leases.test_records import record as lease_record
from tests.unit.node import test_noise_floor
from tests.unit.small_study import SMALL_STUDY
from tests.unit.system import test_cassandra_snapshots as snapshots
from tests.unit.verify import made

OTHER = pytest.mark.parametrize("number", [0, 2])
CALIBRATION = Calibration.model_validate({
    "made_s": 1.0, "machine": {}, "agent": "a", "optimised": True, "ceilings": [], "memory_bytes": 1,
    "slip": {"rate_per_s": 1.0, "operations": 1, "pacing_ms_p50": 0.0, "pacing_ms_p99": 0.0},
    "background_cpu_fraction": 0.0, "steal_fraction": 0.0,
})  # fmt: skip


def change(path: Path, number: int) -> None:
    """Write another format into a file of JSON."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert content["format"] == 1
    path.write_text(json.dumps({**content, "format": number}), encoding="utf-8")


@OTHER
def test_a_study_file(number: int) -> None:
    with pytest.raises(StudyError, match=f"small.toml:1: format = {number}: this version reads 1") as refused:
        study.read_text(f"format = {number}\n{SMALL_STUDY}", "small.toml")
    assert "use the version of Steelyard" in refused.value.hint


@OTHER
def test_a_workload_file(number: int) -> None:
    text = (
        Path("studies/workloads/accounts.toml").read_text(encoding="utf-8").replace("format = 1", f"format = {number}")
    )
    with pytest.raises(StudyError, match=f"accounts.toml:[0-9]+: format = {number}: this version reads 1"):
        _file.read_text(text, "accounts.toml")


@OTHER
@pytest.mark.parametrize("name", [layout.STUDY_JSON, layout.TRIAL_JSON])
def test_a_study_and_a_record_of_a_store(tmp_path: Path, name: str, number: int) -> None:
    folder = made.store(tmp_path)
    (folder / layout.EVENTS).unlink()
    path = sorted(folder.rglob(name))[0]
    change(path, number)
    with pytest.raises(OtherFormatError, match=f"{name} has format {number}, this version reads 1") as refused:
        _ = Store(folder).study, Store(folder).trials()
    assert refused.value.hint == "use the version of Steelyard that wrote it"


@OTHER
def test_a_calibration(tmp_path: Path, number: int) -> None:
    path = calibration.path_in(tmp_path, "cql")
    calibration.write(path, CALIBRATION)
    assert calibration.read(path) == CALIBRATION
    change(path, number)
    with pytest.raises(SteelyardError, match=f"{path} has format {number}, this version reads 1") as refused:
        calibration.read(path)
    assert "steelyard calibrate" in refused.value.hint


@OTHER
def test_a_noise_floor(tmp_path: Path, number: int) -> None:
    floor: KeptFloor = test_noise_floor.floor()
    path = noise_floor.write(tmp_path, floor)
    change(path, number)
    found = noise_floor.find(tmp_path, [floor.holds_for])
    assert found.floor is None
    assert f"{path} has format {number}, this version reads 1 and was skipped" in found.why
    assert "measures it" in found.why


@OTHER
def test_a_lease(tmp_path: Path, number: int) -> None:
    path = lease_records.record_path(tmp_path, "0a1b2c3d")
    lease_records.write(path, lease_record())
    change(path, number)
    with pytest.raises(SiteError, match=f"{path} has format {number}, this version reads 1") as refused:
        lease_records.read(path)
    assert "steelyard clean" in refused.value.hint


@OTHER
def test_a_live_file_says_nothing(tmp_path: Path, number: int) -> None:
    (tmp_path / layout.LIVE).write_text(json.dumps({"format": number, "t_s": 1.0, "total": 3}), encoding="utf-8")
    assert live_file.read(tmp_path) is None


@OTHER
def test_a_snapshot_is_made_anew(tmp_path: Path, number: int) -> None:
    (node, *_) = snapshots.filled(tmp_path)
    kept = _snapshots.KeptSnapshots(tmp_path)
    asyncio.run(kept.keep(node, snapshots.SCHEMA, "k"))
    assert asyncio.run(kept.has(node, "k"))
    change(tmp_path / "snapshots" / "k" / f"{node.name}.json", number)
    assert not asyncio.run(kept.has(node, "k"))


@OTHER
def test_what_an_agent_says(number: int) -> None:
    hello = {"record": "hello", "format": number, "agent": "x", "optimised": True, "t_s": 1.0}
    with pytest.raises(
        wire.RecordError, match=f"the agent writes format {number}, but this version requires 1"
    ) as refused:
        wire.parse(json.dumps(hello))
    assert "same version" in refused.value.hint
