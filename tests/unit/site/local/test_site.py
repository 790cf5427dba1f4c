"""Site `local` where it needs no privileges: settings, refusals, addresses, prefixes, the lock on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent
from steelyard.site import local
from steelyard.site.base import Request
from steelyard.site.kernel import cgroup, network
from tests.conftest import Rights

LOOPBACK = local.Settings(mode="loopback")


def hour() -> object:
    return lease_records.utc_now() + timedelta(hours=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "vm"},
        {"subnet": "10"},
        {"subnet": "10.256"},
        {"subnet": "127.0"},
        {"subnet": "0.1"},
        {"cpu": 1},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        local.Settings.model_validate(wrong)


def test_without_privileges_auto_means_loopback(rights: Rights, tmp_path: Path) -> None:
    site = local.create(local.Settings(), tmp_path)
    assert site.mode == "loopback"
    assert site.shares == {"cpu", "memory", "disk", "clock", "kernel", "network"}
    assert list(tmp_path.iterdir()) == []


def test_namespaces_share_everything_but_the_network(tmp_path: Path) -> None:
    assert local.create(local.Settings(mode="namespaces"), tmp_path).shares == {
        "cpu",
        "memory",
        "disk",
        "clock",
        "kernel",
    }


def test_refusals_say_why(rights: Rights, tmp_path: Path) -> None:
    def refusal(settings: local.Settings, nodes: int = 1, memory_mb: int | None = None, **limits: float) -> str:
        request = Request("s", nodes, limits=NodeLimits.model_validate(limits))
        return local.create(settings, tmp_path).refuse(request, memory_mb) or ""

    assert refusal(LOOPBACK) == ""
    assert "needs root; this process lacks net_admin" in refusal(local.Settings(mode="namespaces"))
    assert "251 nodes" in refusal(LOOPBACK, nodes=251)
    assert "need 1000000064 MB, but" in refusal(LOOPBACK, nodes=100, memory_mb=10_000_000)
    assert "cpus = 0.1 cannot be enforced: no permission" in refusal(LOOPBACK, cpus=0.1)
    assert "cores" in refusal(LOOPBACK, cpus=10_000)
    small = Request("s", 1, limits=NodeLimits(memory_mb=64))
    assert "memory_mb = 64 cannot be enforced" in (local.create(LOOPBACK, tmp_path).refuse(small, None) or "")


def test_a_limit_under_the_system_s_need_is_refused(
    rights: Rights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rights.groups = cgroup.Hierarchies({"memory": tmp_path}, None, frozenset(), ())
    monkeypatch.setenv(agent.OVERRIDE, "/bin/true")
    site = local.create(LOOPBACK, tmp_path)
    asked = Request("s", 1, limits=NodeLimits(memory_mb=200))
    assert site.refuse(asked, 300) == "a node needs 300 MB, but memory_mb = 200 is its limit"


def test_loopback_addresses_and_plain_prefixes(rights: Rights, no_agent: list[Path], tmp_path: Path) -> None:
    site = local.create(LOOPBACK, tmp_path)
    lease = asyncio.run(site.lease(Request("s", 2, 2), hour()))
    try:
        assert [node.address for node in lease.nodes] == ["127.113.0.1", "127.113.0.2", "127.0.0.1", "127.0.0.2"]
        assert {node.prefix for node in lease.nodes} == {()}
        facts = asyncio.run(site.facts(lease.nodes[0]))
        assert facts["cgroup_version"] == "none"
        assert "no permission" in facts["cgroup_problems"]
    finally:
        asyncio.run(site.release(lease))
    assert list((tmp_path / "nodes").iterdir()) == []


def test_prefixes_of_namespaces(rights: Rights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(agent.OVERRIDE, "/bin/true")
    rights.capable = True
    site = local.create(local.Settings(mode="namespaces", subnet="10.7"), tmp_path)
    groups = cgroup.Hierarchies({"cpu": Path("/c/cpu"), "memory": Path("/c/mem")}, None, frozenset(), ())
    node = site._node("0a1b2c3d", "database", 3, groups, Request("s", 3, limits=NodeLimits(memory_mb=99)))
    assert " ".join(node.prefix) == (
        "/bin/true enter --netns /run/netns/sy-0a1b2c3d-n3 --cgroup /c/cpu/steelyard/0a1b2c3d/n3 "
        "--cgroup /c/mem/steelyard/0a1b2c3d/n3 --drop-capability ipc_lock --"
    )
    assert " ".join(node.watch_prefix) == (
        "/bin/true enter --netns /run/netns/sy-0a1b2c3d-n3 --drop-capability ipc_lock --"
    )
    assert (node.address, node.memory_mb) == ("10.7.0.3", 99)
    assert node.environment == {
        "STEELYARD_LEASE": "0a1b2c3d",
        "STEELYARD_LEASE_RECORD": f"{tmp_path}/leases/0a1b2c3d.json",
    }
    loader = site._node("0a1b2c3d", "load", 1, groups, Request("s", 3))
    assert (loader.name, loader.address, loader.memory_mb) == ("l1", "10.7.1.1", None)


def test_second_loopback_lease_names_the_other_study(rights: Rights, tmp_path: Path) -> None:
    site = local.create(LOOPBACK, tmp_path)
    lease = asyncio.run(site.lease(Request("first study", 1), hour()))
    try:
        with pytest.raises(SiteError, match=rf"study first study \(lease {lease.id}, process {os.getpid()}\)"):
            asyncio.run(site.lease(Request("second study", 1), hour()))
        assert [path.stem for path in (tmp_path / "leases").glob("*.json")] == [lease.id]
    finally:
        asyncio.run(site.release(lease))


def test_loopback_lease_of_a_dead_study_points_to_clean(rights: Rights, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        who = lease_records.owner(process.pid)
        process.kill()
    site = local.create(LOOPBACK, tmp_path)
    record = site._record(Request("dead study", 1), lease_records.utc_now() + timedelta(hours=1), rights.groups)
    lease_records.write(lease_records.record_path(tmp_path, record.id), record.model_copy(update={"owner": who}))
    with pytest.raises(SiteError, match="dead study") as caught:
        asyncio.run(site.lease(Request("s", 1), hour()))
    assert "steelyard clean" in caught.value.hint
    (left,) = [lease for lease in asyncio.run(site.leftovers()) if lease.id == record.id]
    asyncio.run(site.release(left))
    asyncio.run(site.release(asyncio.run(site.lease(Request("s", 1), hour()))))


def test_release_does_every_step_and_raises_one_error(
    rights: Rights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = local.create(LOOPBACK, tmp_path)
    lease = asyncio.run(site.lease(Request("s", 1), hour()))

    async def stuck(*arguments: object) -> None:
        raise SiteError("the network is stuck")

    with monkeypatch.context() as patched:
        # Only a kernel that has a fault would do this.
        patched.setattr(network, "delete", stuck)
        with pytest.raises(SiteError, match=f"lease {lease.id} was not fully taken back: the network is stuck"):
            asyncio.run(site.release(lease))
    assert not lease.nodes[0].folder.exists()
    assert lease.record.exists()
    asyncio.run(site.release(lease))
    assert not lease.record.exists()


def test_namespaces_are_told_by_their_names(tmp_path: Path) -> None:
    for name in ("sy-0a1b2c3d-sw", "sy-0a1b2c3d-n12", "sy-ffffffff-l1", "sy-ffffffff-x1", "sy-12-n1", "other"):
        (tmp_path / name).touch()
    assert network.present(folder=tmp_path) == {
        "0a1b2c3d": ["sy-0a1b2c3d-n12", "sy-0a1b2c3d-sw"],
        "ffffffff": ["sy-ffffffff-l1"],
    }
    assert network.present("ffffffff", tmp_path) == {"ffffffff": ["sy-ffffffff-l1"]}
    assert network.present(folder=tmp_path / "none") == {}
