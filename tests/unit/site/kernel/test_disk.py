"""Disks of nodes where they need no privileges: what is written to the kernel, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.node_limits import DISK_RATES, NodeLimits
from steelyard.site.kernel import disk
from steelyard.site.kernel.cgroup import Hierarchies
from tests.conftest import Rights

LIMITS = NodeLimits(disk_read_mb_per_s=18.5, disk_write_mb_per_s=14, disk_read_ops_per_s=1958, disk_write_ops_per_s=732)
NOTHING = Hierarchies({}, None, frozenset(), ())


def version_1(tmp_path: Path) -> Hierarchies:
    return Hierarchies({}, None, frozenset(), (), blkio=tmp_path)


def test_version_1_throttles_the_device_in_the_top_group(tmp_path: Path) -> None:
    (tmp_path / "bdi" / "7:3").mkdir(parents=True)
    (tmp_path / "bdi" / "7:3" / "strict_limit").write_text("0")
    lines = disk.throttle("7:3", LIMITS, version_1(tmp_path), None, tmp_path / "bdi")
    assert [(file.name, text) for file, text in lines] == [
        ("blkio.throttle.read_bps_device", "7:3 18500000"),
        ("blkio.throttle.write_bps_device", "7:3 14000000"),
        ("blkio.throttle.read_iops_device", "7:3 1958"),
        ("blkio.throttle.write_iops_device", "7:3 732"),
        ("max_bytes", "7000000"),
        ("strict_limit", "1"),
    ]
    assert {file.parent for file, _ in lines[:4]} == {tmp_path}


def test_a_kernel_without_strict_limits_throttles_all_the_same(tmp_path: Path) -> None:
    lines = disk.throttle("7:3", LIMITS, version_1(tmp_path), None, tmp_path / "bdi")
    assert [file.name for file, _ in lines] == list(disk.VERSION_1_FILES.values())


VERSION_2 = Hierarchies({}, Path("/c"), frozenset({"cpu", "memory"}), (), version_2_on_demand=frozenset({"io"}))
NODE = Path("/s/nodes/0a1b2c3d/n1")
GROUP = Path("/c/steelyard/0a1b2c3d/n1")


def test_version_2_throttles_the_device_in_the_node_s_group() -> None:
    assert disk._group(VERSION_2, NODE) == GROUP
    assert disk.throttle("7:3", LIMITS, VERSION_2, GROUP) == [
        (GROUP / "io.max", "7:3 rbps=18500000 wbps=14000000 riops=1958 wiops=732")
    ]
    assert disk.throttle("7:3", LIMITS, VERSION_2, None) == []


@pytest.mark.parametrize(
    ("limits", "before"),
    [(NodeLimits(disk_gb=1), ("0", "max", ["0", "100"])), (LIMITS, ("14000000", "14000000", ["7000000"]))],
    ids=["unlimited", "limited"],
)
def test_a_slow_disk_gets_its_limits_back(
    tmp_path: Path, limits: NodeLimits, before: tuple[str, str, list[str]]
) -> None:
    """Only the files that change are written, and the same ones at the end."""
    (tmp_path / "7:3").mkdir()
    (tmp_path / "7:3" / "strict_limit").touch()
    slow = NodeLimits(disk_write_mb_per_s=2)
    rate, word, strict = before
    begun, ended = disk._slowed("7:3", slow, limits, version_1(tmp_path), None, tmp_path)
    writes = tmp_path / disk.VERSION_1_FILES["disk_write_mb_per_s"]
    assert (begun[0], ended[0]) == ((writes, "7:3 2000000"), (writes, f"7:3 {rate}"))
    assert (begun[1], [text for _, text in ended[1:]]) == ((tmp_path / "7:3" / "max_bytes", str(4 << 20)), strict)
    assert all(file.parent.name == "7:3" for file, _ in (*begun[1:], *ended[1:]))
    begun, ended = disk._slowed("7:3", slow, limits, VERSION_2, GROUP)
    assert [(file, text.split()[2]) for file, text in begun] == [(GROUP / "io.max", "wbps=2000000")]
    assert [(file, text.split()[2]) for file, text in ended] == [(GROUP / "io.max", f"wbps={word}")]


def test_rates_in_force_are_read_back(tmp_path: Path) -> None:
    """Version 1 has a file for each rate and a line for each device in it, version 2 a line with all rates."""
    first, node = version_1(tmp_path), tmp_path / "0a1b2c3d" / "n1"
    assert first.blkio is not None
    for name in disk.VERSION_1_FILES.values():
        (first.blkio / name).write_text("7:1 5\n7:3 1000\n" if "write_bps" in name else "7:1 5\n")
    rates = disk._rates_in_force("7:3", first, node)
    assert rates == {**dict.fromkeys(DISK_RATES, "none"), "disk_write_mb_per_s": "1000"}
    second = Hierarchies({}, tmp_path, frozenset({"cpu"}), (), version_2_on_demand=frozenset({"io"}))
    assert disk._rates_in_force("7:3", second, node) == {}
    group = tmp_path / "steelyard" / "0a1b2c3d" / "n1"
    group.mkdir(parents=True)
    (group / "io.max").write_text("7:1 rbps=5 wbps=5 riops=5 wiops=5\n7:3 rbps=max wbps=1000 riops=max wiops=max\n")
    assert disk._rates_in_force("7:3", second, node) == rates
    lifting = disk.throttle("7:3", NodeLimits(), second, group)
    assert lifting == [(group / "io.max", "7:3 rbps=max wbps=max riops=max wiops=max")]


def test_a_size_alone_throttles_nothing() -> None:
    size = NodeLimits(disk_gb=2)
    assert (size.own_disk, size.slow_disk) == (True, False)
    assert not NodeLimits(memory_mb=100, cpus=1).own_disk


def test_what_is_lacking_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rights: Rights) -> None:
    for name in disk.PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    def lacking(hierarchies: Hierarchies, limits: NodeLimits = LIMITS, control: str = "mount") -> str:
        return disk.lacking(hierarchies, limits, control=tmp_path / control, folders=str(tmp_path)) or ""

    rights.capable = True
    assert lacking(version_1(tmp_path)) == ""
    assert "controller blkio (version 1) or io (version 2)" in lacking(NOTHING)
    assert lacking(NOTHING, NodeLimits(disk_gb=1)) == ""
    rights.capable = False
    assert "needs root" in lacking(version_1(tmp_path))
    assert "modprobe loop" in lacking(version_1(tmp_path), control="none")
    (tmp_path / "mke2fs").unlink()
    assert "mke2fs (Debian: apt-get install e2fsprogs)" in lacking(version_1(tmp_path), control="none")


def test_only_our_files_are_found(tmp_path: Path) -> None:
    def loop(number: int, path: str) -> None:
        folder = tmp_path / f"loop{number}" / "loop"
        folder.mkdir(parents=True)
        (folder / "backing_file").write_text(f"{path}\n")

    loop(0, "/var/lib/snapd/core.snap")
    loop(1, "/s/nodes/0a1b2c3d/n1.disk")
    loop(2, "/s/nodes/0a1b2c3d/n2.disk (deleted)")
    loop(3, "/s/nodes/elsewhere/n1.disk")
    nodes = Path("/s/nodes/0a1b2c3d")
    assert disk.present(devices=tmp_path) == {"0a1b2c3d": [("loop1", nodes / "n1.disk"), ("loop2", nodes / "n2.disk")]}
    assert disk.device_of(nodes / "n2", tmp_path) == "loop2"
    assert disk.device_of(nodes / "n3", tmp_path) is None
