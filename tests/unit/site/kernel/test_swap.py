"""Swap of nodes: refused where the kernel cannot limit it, noted where the machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.node_limits import NodeLimits
from steelyard.node import agent, machine_facts
from steelyard.site import local
from steelyard.site.base import Refusal, Request
from steelyard.site.kernel import swap
from steelyard.site.kernel.cgroup import Hierarchies
from steelyard.site.local import findings
from tests.conftest import Rights

BOARD = NodeLimits(memory_mb=100, swap_mb=50)


@pytest.fixture
def first(tmp_path: Path) -> Hierarchies:
    """Version 1 without accounting of swap."""
    (tmp_path / "memory").mkdir()
    return Hierarchies({"memory": tmp_path / "memory"}, None, frozenset(), ())


def counting(hierarchies: Hierarchies) -> None:
    (hierarchies.version_1["memory"] / "memory.memsw.limit_in_bytes").touch()


def machine_has(monkeypatch: pytest.MonkeyPatch, swap_mb: int) -> None:
    texts = {"/proc/meminfo": f"MemTotal: 8388608 kB\nMemAvailable: 8000000 kB\nSwapTotal: {swap_mb * 1024} kB\n"}
    # Swap of a size that this machine has not.
    monkeypatch.setattr(machine_facts, "read", lambda path: texts.get(path, ""))


def test_swap_that_is_not_counted_is_refused_where_the_machine_has_any(
    first: Hierarchies, rights: Rights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rights.groups = first
    monkeypatch.setenv(agent.OVERRIDE, "/bin/true")
    machine_has(monkeypatch, 512)
    site, request = local.create(local.Settings(mode="loopback"), tmp_path), Request("s", 1, limits=BOARD)
    refused = site.refuse(request, None)
    assert isinstance(refused, Refusal)
    assert refused.startswith("swap_mb = 50 cannot be enforced: this kernel does not count the swap of control groups")
    assert (refused.key, refused.hint) == ("node.swap_mb", "boot with swapaccount=1, or run as root: swapoff -a")
    counting(first)
    assert site.refuse(request, None) is None
    assert site.notes(request) == []


def test_swap_is_marked_where_memory_alone_is_limited_and_it_is_not_counted(
    first: Hierarchies, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_has(monkeypatch, 512)
    (note,) = swap.notes(first, NodeLimits(memory_mb=100), 1)
    assert note.startswith("node.memory_mb limits RAM alone here")
    counting(first)
    assert list(swap.notes(first, NodeLimits(memory_mb=100), 1)) == []


def test_swap_that_a_machine_has_not_is_a_note(first: Hierarchies, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_has(monkeypatch, 0)
    assert swap.refusal(first, BOARD) is None
    (note,) = swap.notes(first, BOARD, 3)
    assert note.startswith("node.swap_mb = 50, but this machine has no swap")
    assert list(swap.notes(first, NodeLimits(memory_mb=100, swap_mb=0), 3)) == []
    assert list(swap.notes(first, BOARD, 0)) == [], "another site lends the databases"
    machine_has(monkeypatch, 120)
    counting(first)
    assert list(swap.notes(first, BOARD, 2)) == []
    (note,) = swap.notes(first, BOARD, 3)
    assert note.startswith("node.swap_mb = 50 per node, but this machine has ")


def test_version_2_says_it_in_groups_that_have_a_limit(tmp_path: Path) -> None:
    second = Hierarchies({}, tmp_path, frozenset({"cpu", "memory"}), ())
    assert swap.counted(second)
    group = tmp_path / "system.slice"
    group.mkdir()
    (group / "memory.max").touch()
    assert not swap.counted(second)
    (group / "memory.swap.max").touch()
    assert swap.counted(second)
    assert not swap.counted(Hierarchies({}, None, frozenset(), ()))


def test_doctor_says_whether_a_profile_with_swap_gets_it(first: Hierarchies, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_has(monkeypatch, 0)
    none = findings.swap(first)
    assert (none.state, none.found) == ("poor", "none: nodes have no swap, whatever node.swap_mb allows")
    assert "swapon" in none.hint
    machine_has(monkeypatch, 512)
    uncounted = findings.swap(first)
    assert (uncounted.state, uncounted.found) == ("poor", "512 MiB, not limited per node")
    assert "swapaccount=1" in uncounted.hint
    counting(first)
    assert findings.swap(first).state == "good"
