"""How the kernel is set, from made-up trees of /proc and /sys: what is there is told, what is not is left out."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from steelyard.site.kernel import kernel_settings


def put(folder: Path, name: str, content: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_kernel_parameters_huge_pages_and_limits(tmp_path: Path) -> None:
    put(tmp_path, "proc/sys/vm/swappiness", "60\n")
    put(tmp_path, "proc/sys/net/ipv4/tcp_congestion_control", "cubic\n")
    put(tmp_path, "proc/cmdline", "password=x\n")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    put(tmp_path, "sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")
    put(tmp_path, "sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: IBRS\n")
    put(tmp_path, "sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n")
    found = kernel_settings.facts(tmp_path / "proc", tmp_path / "sys")
    assert found["sysctl vm.swappiness"] == "60"
    assert found["sysctl net.ipv4.tcp_congestion_control"] == "cubic"
    assert found["transparent_hugepage"] == "madvise"
    assert found["turbo"] == "off"
    assert "password=x" not in found.values()
    assert found["mitigations"] == "spectre_v2: Mitigation: IBRS"
    assert "sysctl vm.dirty_ratio" not in found
    assert "smt" not in found
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = ("unlimited" if one == resource.RLIM_INFINITY else str(one) for one in (soft, hard))
    assert found["ulimit open_files"] == "/".join(words)


MOUNTS = """\
20 1 253:0 / / rw,relatime - ext4 /dev/vda rw
30 20 253:17 / /data\\040disk rw,noatime - xfs /dev/vdb1 rw
31 20 0:30 / /dev/shm rw - tmpfs shm rw
torn line
"""


@pytest.mark.parametrize(
    ("folder", "filesystem", "device"),
    [
        ("/data disk/n1", "xfs (rw,noatime)", "/dev/vdb1"),
        ("/data", "ext4 (rw,relatime)", "/dev/vda"),
        ("/dev/shm", "tmpfs (rw)", "shm"),
    ],
)
def test_the_disk_below_a_folder(folder: str, filesystem: str, device: str, tmp_path: Path) -> None:
    found = kernel_settings.disk(Path(folder), MOUNTS, tmp_path)
    assert (found["disk_filesystem"], found["disk_device"]) == (filesystem, device)
    assert "disk_scheduler" not in found


def test_a_partition_has_the_queue_of_its_disk(tmp_path: Path) -> None:
    disk = tmp_path / "devices" / "vdb"
    put(disk, "queue/scheduler", "[mq-deadline] none\n")
    put(disk, "queue/rotational", "0\n")
    put(disk, "device/model", "QEMU disk  \n")
    (disk / "vdb1").mkdir()
    (tmp_path / "dev" / "block").mkdir(parents=True)
    (tmp_path / "dev" / "block" / "253:17").symlink_to(disk / "vdb1")
    found = kernel_settings.disk(Path("/data disk"), MOUNTS, tmp_path)
    assert (found["disk_scheduler"], found["disk_rotational"]) == ("mq-deadline", "no")
    assert kernel_settings.disk(Path("/"), "", tmp_path) == {}


def test_of_this_machine_they_are_words() -> None:
    found = kernel_settings.facts() | kernel_settings.disk(Path("/"))
    assert all(isinstance(value, str) and value for value in found.values())
    assert "ulimit processes" in found
