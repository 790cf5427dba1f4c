"""Control groups on trees of plain files: which hierarchy is used, what is written, what is said when none is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.model.errors import SiteError
from steelyard.site.kernel import cgroup
from steelyard.site.kernel.cgroup import Hierarchies, Mount, NodeLimits

VERSION_1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
ENABLED = frozenset({"cpu", "cpuacct", "memory"})


def test_mounts_of_both_versions() -> None:
    assert cgroup.parse_mounts(VERSION_1) == (
        Mount(Path("/sys/fs/cgroup/cpu,cpuacct"), 1, frozenset({"cpu", "cpuacct"})),
        Mount(Path("/sys/fs/cgroup/memory"), 1, frozenset({"memory"})),
        Mount(Path("/sys/fs/cgroup/systemd"), 1, frozenset()),
        Mount(Path("/sys/fs/cgroup/unified"), 2, frozenset()),
    )


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\nmemory\t4\t18\t0\n", {"cpu"}),
        ("", set()),
    ],
)
def test_controllers_that_are_switched_off(text: str, enabled: set[str]) -> None:
    assert cgroup.parse_enabled(text) == enabled


def version_1(top: Path) -> tuple[Mount, ...]:
    for name in ("cpu,cpuacct", "memory", "unified"):
        (top / name).mkdir()
    return (
        Mount(top / "cpu,cpuacct", 1, frozenset({"cpu", "cpuacct"})),
        Mount(top / "memory", 1, frozenset({"memory"})),
        Mount(top / "unified", 2, frozenset()),
    )


def group(path: Path, controllers: str, handed_down: str = "", members: str = "", *, top: bool = False) -> Path:
    """A group of version 2 made of plain files."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.controllers").write_text(controllers)
    (path / "cgroup.subtree_control").write_text(handed_down)
    (path / "cgroup.procs").write_text(members)
    if not top:
        (path / "cgroup.type").write_text("domain")
    return path


def test_version_1_controllers_that_share_a_mount_give_one_folder(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED, "/")
    assert chosen.bases == (tmp_path / "cpu,cpuacct" / "steelyard", tmp_path / "memory" / "steelyard")
    assert (chosen.version, chosen.problems) == ("1", ())
    assert chosen.has("cpu")
    assert chosen.has("memory")


def test_version_1_without_memory_says_so(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED - {"memory"}, "/")
    assert not chosen.has("memory")
    assert chosen.problems == ("controller memory is switched off",)


def test_nothing_mounted() -> None:
    chosen = cgroup.choose((), ENABLED, "/")
    assert (chosen.bases, chosen.version, chosen.problems) == ((), "none", ("no cgroup hierarchy is mounted",))


def test_version_2_at_the_top_hands_down_whatever_is_in_it(tmp_path: Path) -> None:
    group(tmp_path, "cpuset cpu io memory pids", members="1\n2\n", top=True)
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/")
    assert (chosen.version_2, chosen.version_2_controllers) == (tmp_path, {"cpu", "memory"})
    assert (chosen.version, chosen.problems) == ("2", ())


def test_version_2_in_a_container_cannot_hand_down_while_it_holds_processes(tmp_path: Path) -> None:
    group(tmp_path, "cpu memory", members="1\n")
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/")
    assert (chosen.version_2, chosen.version_2_controllers) == (tmp_path, set())
    assert not chosen.has("memory")
    assert "it holds processes itself" in chosen.problems[0]


def test_version_2_that_holds_processes_has_only_what_it_hands_down(tmp_path: Path) -> None:
    group(tmp_path, "cpu cpuset io memory", handed_down="cpu memory cpuset", members="1\n")
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/")
    assert (chosen.has("memory"), chosen.has("cpuset"), chosen.has("io")) == (True, True, False)


@pytest.fixture
def delegated(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Groups in which this process may make others: root may everywhere."""
    places: set[Path] = set()
    monkeypatch.setattr(cgroup, "_may_make", lambda place: place in places)
    return places


def test_version_2_takes_a_delegated_ancestor(tmp_path: Path, delegated: set[Path]) -> None:
    slice_ = group(tmp_path / "user.slice", "cpu memory", "cpu memory")
    service = group(slice_ / "user@1000.service", "cpu memory", "cpu memory")
    group(service / "app.slice", "cpu memory", members="77\n")
    group(tmp_path, "cpu memory", top=True)
    delegated |= {service, service / "app.slice"}
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/user.slice/user@1000.service/app.slice")
    assert (chosen.version_2, chosen.version_2_controllers) == (service, {"cpu", "memory"})
    assert chosen.problems == ()


def test_version_2_without_rights(tmp_path: Path, delegated: set[Path]) -> None:
    group(tmp_path, "cpu memory", top=True)
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/")
    assert chosen.bases == ()
    assert chosen.problems == (f"no permission to create groups in {tmp_path}",)


def test_version_1_limits(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED, "/")
    cpu, memory = cgroup.folders(chosen, "0a1b2c3d", "n1")
    memory.mkdir(parents=True)
    (memory / "memory.memsw.limit_in_bytes").write_text("")
    cgroup.make(chosen, "0a1b2c3d", "n1", NodeLimits(cpus=1.5, memory_mb=512))
    assert (cpu / "cpu.cfs_period_us").read_text() == "100000"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "150000"
    assert (memory / "memory.limit_in_bytes").read_text() == str(512 * 2**20)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(512 * 2**20)
    assert cgroup.in_force((cpu, memory)) == {
        "limit_cpus": "1.5", "limit_cpu_period_ms": "100", "limit_memory_bytes": str(512 * 2**20),
        "limit_swap_bytes": "0",
    }  # fmt: skip


def test_version_2_limits_and_controllers_on_the_way_down(tmp_path: Path) -> None:
    group(tmp_path, "cpu memory", handed_down="cpu", top=True)
    chosen = Hierarchies({}, tmp_path, frozenset({"cpu", "memory"}), ())
    cgroup.make(chosen, "0a1b2c3d", "n1", NodeLimits(cpus=0.5, memory_mb=512))
    (node,) = cgroup.folders(chosen, "0a1b2c3d", "n1")
    assert (node / "cpu.max").read_text() == "50000 100000"
    assert (node / "memory.max").read_text() == str(512 * 2**20)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
    assert (tmp_path / "steelyard" / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (tmp_path / "steelyard" / "0a1b2c3d" / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert not (node / "cgroup.subtree_control").exists()
    assert cgroup.in_force((node,)) == {
        "limit_cpus": "0.5", "limit_cpu_period_ms": "100", "limit_memory_bytes": str(512 * 2**20),
        "limit_swap_bytes": "none",
    }  # fmt: skip


def test_version_1_swap_and_cores(tmp_path: Path) -> None:
    cpuset = tmp_path / "cpuset"
    cpuset.mkdir()
    (cpuset / "cpuset.cpus").write_text("0-3\n")
    (cpuset / "cpuset.mems").write_text("0\n")
    chosen = replace(cgroup.choose(version_1(tmp_path), ENABLED, "/"), cpuset=cpuset)
    limits = NodeLimits(cpus=2, cpu_limit="cpuset", memory_mb=512, swap_mb=100)
    every = cgroup.folders(chosen, "0a1b2c3d", "n1", limits)
    _, memory, cores = every
    memory.mkdir(parents=True)
    (memory / "memory.memsw.limit_in_bytes").write_text("")
    cgroup.make(chosen, "0a1b2c3d", "n1", limits, "2,3")
    assert (cores / "cpuset.cpus").read_text() == "2,3"
    assert [(place / "cpuset.mems").read_text() for place in (cores, *cores.parents[:2])] == ["0", "0", "0"]
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(612 * 2**20)
    assert not list(tmp_path.rglob("cpu.cfs_quota_us"))
    facts = cgroup.in_force(every)
    assert (facts["limit_cores"], facts["limit_cpus"]) == ("2,3", "2")
    assert facts["limit_swap_bytes"] == str(100 * 2**20)
    assert cgroup.folders(chosen, "0a1b2c3d", "n2") == tuple(path.parent / "n2" for path in every[:2])
    assert cores in cgroup.present(chosen)["0a1b2c3d"]


def test_version_2_hands_down_what_a_limit_needs(tmp_path: Path) -> None:
    group(tmp_path, "cpu memory cpuset io", handed_down="cpu memory", top=True)
    chosen = cgroup.choose((Mount(tmp_path, 2, frozenset()),), ENABLED, "/")
    assert (chosen.has("cpuset"), chosen.has("io")) == (True, True)
    limits = NodeLimits(cpus=1, cpu_limit="cpuset", disk_gb=1, memory_mb=64, swap_mb=10)
    cgroup.make(chosen, "0a1b2c3d", "n1", limits, "1")
    (node,) = cgroup.folders(chosen, "0a1b2c3d", "n1", limits)
    assert (node / "cpuset.cpus").read_text() == "1"
    assert not (node / "cpu.max").exists()
    assert (tmp_path / "steelyard" / "0a1b2c3d" / "cgroup.subtree_control").read_text() == "+cpu +cpuset +io +memory"
    cgroup.make(chosen, "0a1b2c3e", "n1", NodeLimits())
    assert (tmp_path / "steelyard" / "0a1b2c3e" / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_a_quota_is_set_and_lifted_while_processes_run(tmp_path: Path) -> None:
    first, second, memory = (tmp_path / name for name in ("v1", "v2", "memory"))
    for folder in (first, second, memory):
        folder.mkdir()
    (first / "cpu.cfs_quota_us").write_text("-1")
    (second / "cpu.max").write_text("max 100000")
    for group in (first, second):
        cgroup.throttle((group, memory), 0.4)
        assert cgroup.in_force((group, memory))["limit_cpus"] == "0.4"
        cgroup.throttle((group, memory), None)
        assert cgroup.in_force((group, memory))["limit_cpus"] == "none"
    assert list(memory.iterdir()) == []
    cgroup.throttle((memory,), None)
    with pytest.raises(SiteError, match="no control group with a CPU quota"):
        cgroup.throttle((memory,), 0.4)


def test_cores_of_a_kernel_s_list() -> None:
    assert cgroup.cores_in("0-2,5\n") == {0, 1, 2, 5}
    assert cgroup.cores_in("\n") == set()


def test_cores_are_those_that_the_group_above_hands_down(tmp_path: Path) -> None:
    second = Hierarchies({}, tmp_path, frozenset({"cpu", "memory"}), (), version_2_on_demand=frozenset({"cpuset"}))
    assert cgroup.cores_handed_down(second) == set(), "the kernel does not say"
    (tmp_path / "cpuset.cpus").write_text("\n")
    (tmp_path / "cpuset.cpus.effective").write_text("1-3\n")
    assert cgroup.cores_handed_down(second) == {1, 2, 3}
    ours = tmp_path / "steelyard" / "0a1b2c3d" / "n1"
    ours.mkdir(parents=True)
    (tmp_path / "steelyard" / "cpuset.cpus.effective").write_text("2-3\n")
    assert cgroup.cores_handed_down(second) == {2, 3}
    (ours / "cpuset.cpus").write_text("3\n")
    assert cgroup.cores_taken(second) == {3}


def test_no_limit_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text("-1")
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712")
    assert cgroup.in_force((tmp_path,)) == {"limit_cpus": "none", "limit_memory_bytes": "none"}


def test_accounting_without_limits_writes_nothing(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED, "/")
    cgroup.make(chosen, "0a1b2c3d", "l1", NodeLimits())
    assert all(list(folder.iterdir()) == [] for folder in cgroup.folders(chosen, "0a1b2c3d", "l1"))


def test_present_and_remove_go_bottom_up(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED, "/")
    for identity in ("0a1b2c3d", "ffffffff"):
        cgroup.make(chosen, identity, "n1", NodeLimits())
    (chosen.bases[0] / "0a1b2c3d" / "n1" / "made-by-the-system").mkdir()
    assert set(cgroup.present(chosen)) == {"0a1b2c3d", "ffffffff"}
    asyncio.run(cgroup.remove(chosen, "0a1b2c3d"))
    asyncio.run(cgroup.remove(chosen, "0a1b2c3d"))
    assert set(cgroup.present(chosen)) == {"ffffffff"}
    asyncio.run(cgroup.remove(chosen, "ffffffff"))
    assert not any(base.exists() for base in chosen.bases)


def test_a_group_that_stays_busy_is_an_error_with_its_members(tmp_path: Path) -> None:
    chosen = cgroup.choose(version_1(tmp_path), ENABLED, "/")
    cgroup.make(chosen, "0a1b2c3d", "n1", NodeLimits())
    (chosen.bases[0] / "0a1b2c3d" / "n1" / "cgroup.procs").write_text("4711\n")
    with pytest.raises(SiteError, match="4711"):
        asyncio.run(cgroup.remove(chosen, "0a1b2c3d", 0.05))
