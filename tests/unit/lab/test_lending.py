"""A lease that is handed on from start to start, and given back at the end whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab.conductor import Conductor
from steelyard.lab.lending import Lender, Lending
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError, SystemFault
from steelyard.model.facts import Role
from steelyard.node.base import Node
from steelyard.site.base import Request, Reuses, Site
from steelyard.store import Store, StoreWriter
from tests.unit.lab.fakes import FakeParts, FakeSite, Script, plan_of, study, without_waiting


class HandingOn(FakeSite):
    """A site whose machines serve one start after the other, up to three nodes."""

    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        self.script.recycled.append((lease.id, request.database_nodes))  # type: ignore[attr-defined]
        if request.database_nodes > 3:
            return None
        fresh = await super().lease(request, until)
        self.script.leases.pop()
        return replace(fresh, id=lease.id)


class HandingOnParts(FakeParts):
    def site(self, settings: Any) -> FakeSite:
        return HandingOn(self.script)


def conduct(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> Store:
    without_waiting(monkeypatch)
    script.recycled = []  # type: ignore[attr-defined]
    chosen = study(data={"state": "continue"})
    plan = plan_of(chosen)
    with StoreWriter(tmp_path / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = HandingOnParts(script)
        asyncio.run(Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0)).run())
    return Store(tmp_path / "store" / "fake")


def test_one_lease_serves_all_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(tmp_path)
    store = conduct(tmp_path, script, monkeypatch)
    starts = {trial.start for trial in store.trials()}
    assert len(starts) > 1
    assert script.leases == script.released == ["lease0"]
    assert [lease for lease, _ in script.recycled] == ["lease0"] * (len(starts) - 1)  # type: ignore[attr-defined]


def test_a_start_that_failed_hands_nothing_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(tmp_path)
    failures = iter([True])

    def fail_once(node: object) -> bool:
        if next(failures, False):
            raise SystemFault("it died")
        return True

    script.on_ready = fail_once
    conduct(tmp_path, script, monkeypatch)
    assert script.leases == script.released == ["lease0", "lease1"]


def test_what_a_lease_cannot_fulfil_is_lent_anew(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.recycled = []  # type: ignore[attr-defined]
    site = HandingOn(script)
    assert isinstance(site, Reuses)
    until = datetime.max

    def of(nodes: int) -> list[Lender]:
        return [Lender(site, Request("s", nodes), "site")]

    async def body() -> None:
        lending = Lending()
        first = await lending.lend(of(2), until)
        await lending.give_back(of(2), first, keep=True)
        assert script.released == []
        second = await lending.lend(of(4), until)
        assert (script.released, second.id) == ([first.id], "lease1")
        await lending.give_back(of(4), second, keep=True)
        await lending.release()
        await lending.release()
        assert script.released == [first.id, second.id]

    asyncio.run(body())


def test_the_first_error_wins(tmp_path: Path) -> None:
    script = Script(tmp_path)

    class Stuck(HandingOn):
        async def release(self, lease: Lease) -> None:
            raise SiteError("the host is gone")

    async def body() -> None:
        lending, lenders = Lending(), [Lender(Stuck(script), Request("s", 1), "site")]
        lease = await lending.lend(lenders, datetime.max)
        async with lending.session():
            await lending.give_back(lenders, lease, keep=True)
            raise SystemFault("it died")

    with pytest.raises(SystemFault) as caught:
        asyncio.run(body())
    assert caught.value.__notes__ == ["while the lease was taken back: the host is gone"]


class Elsewhere(FakeSite):
    """Lends only what it is asked for, under names of its own."""

    def __init__(self, script: Script, name: str, address: str = "10.0.0.1", kernel: str = "") -> None:
        super().__init__(script)
        self.name = name
        self.address, self.kernel = address, kernel

    async def lease(self, request: Request, until: datetime) -> Lease:
        roles: list[tuple[Role, str]] = [("database", f"n{i + 1}") for i in range(request.database_nodes)]
        roles += [("load", f"l{i + 1}") for i in range(request.load_nodes)]
        nodes = tuple(
            Node(name, role, self.address, (), self.script.folder, kernel=self.kernel) for role, name in roles
        )
        self.script.leases.append(f"{self.name}{len(self.script.leases)}")
        return Lease(self.script.leases[-1], self.name, nodes, until, self.script.folder / self.name)


class HandsOn(Elsewhere):
    async def recycle(self, lease: Lease, request: Request, until: datetime) -> Lease | None:
        self.script.recycled.append((lease.id, request.database_nodes))  # type: ignore[attr-defined]
        return lease


class Rented(HandsOn):
    most_hours = 1.0


def test_rented_nodes_are_handed_on_while_another_start_is_expected_to_fit(
    tmp_path: Path,
) -> None:
    """Starts of 20 minutes, and up to 30; leases of an hour. How long a start may take at most does not matter."""
    script = Script(tmp_path)
    script.recycled = []  # type: ignore[attr-defined]
    now_s = [0.0]
    lenders = [Lender(Rented(script, "far"), Request("s", 1), "site")]

    async def body() -> list[str]:
        lending, served = Lending(lambda: now_s[0]), list[str]()
        for _ in range(3):
            lease = await lending.lend(lenders, datetime.max)
            served.append(lease.id)
            now_s[0] += 1200
            await lending.give_back(lenders, lease, keep=True)
        await lending.release()
        return served

    assert asyncio.run(body()) == ["far0", "far0", "far1"]
    assert script.released == ["far0", "far1"]


def two_sites(script: Script, databases: Site, load: Site) -> list[Lender]:
    script.recycled = []  # type: ignore[attr-defined]
    return [Lender(databases, Request("s", 2, 0), "site"), Lender(load, Request("s", 0, 1), "load_site")]


def test_the_nodes_of_two_sites_are_one_lease(tmp_path: Path) -> None:
    script = Script(tmp_path)
    lenders = two_sites(script, Elsewhere(script, "shelf"), Elsewhere(script, "desk"))

    async def body() -> None:
        lending = Lending()
        lease = await lending.lend(lenders, datetime.max)
        assert [node.name for node in (*lease.databases, *lease.loaders)] == ["n1", "n2", "l1"]
        assert (lease.id, [part.id for part in lease.parts]) == ("shelf0", ["shelf0", "desk1"])
        await lending.give_back(lenders, lease, keep=False)
        assert script.released == ["shelf0", "desk1"]

    asyncio.run(body())


def test_each_site_hands_its_lease_on_by_itself(tmp_path: Path) -> None:
    script = Script(tmp_path)
    lenders = two_sites(script, HandsOn(script, "shelf"), Elsewhere(script, "desk"))

    async def body() -> None:
        lending = Lending()
        await lending.give_back(lenders, await lending.lend(lenders, datetime.max), keep=True)
        assert script.released == ["desk1"]
        again = await lending.lend(lenders, datetime.max)
        assert [part.id for part in again.parts] == ["shelf0", "desk2"]
        assert script.recycled == [("shelf0", 2)]  # type: ignore[attr-defined]
        await lending.give_back(lenders, again, keep=True)
        await lending.release()
        assert script.released == ["desk1", "desk2", "shelf0"]

    asyncio.run(body())


def test_if_one_site_cannot_lend_nothing_stays_lent(tmp_path: Path) -> None:
    script = Script(tmp_path)

    class Away(Elsewhere):
        async def lease(self, request: Request, until: datetime) -> Lease:
            raise SiteError("the desk is away")

    lenders = two_sites(script, Elsewhere(script, "shelf"), Away(script, "desk"))
    with pytest.raises(SiteError, match="the desk is away"):
        asyncio.run(Lending().lend(lenders, datetime.max))
    assert script.released == script.leases == ["shelf0"]


def test_one_site_is_given_back_even_if_the_other_cannot_be(tmp_path: Path) -> None:
    script = Script(tmp_path)

    class Stuck(Elsewhere):
        async def release(self, lease: Lease) -> None:
            raise SiteError("the host is gone")

    lenders = two_sites(script, Stuck(script, "shelf"), Elsewhere(script, "desk"))

    async def body() -> None:
        lending = Lending()
        lease = await lending.lend(lenders, datetime.max)
        with pytest.raises(SiteError, match="the host is gone"):
            await lending.give_back(lenders, lease, keep=False)

    asyncio.run(body())
    assert script.released == ["desk1"]


def test_databases_on_loopback_cannot_be_loaded_from_another_machine(tmp_path: Path) -> None:
    script = Script(tmp_path)
    desk = Elsewhere(script, "desk", kernel="another")
    lenders = two_sites(script, Elsewhere(script, "here", address="127.0.0.1"), desk)
    with pytest.raises(SiteError, match=r"n1 has the address 127\.0\.0\.1, which only its own machine reaches, not l1"):
        asyncio.run(Lending().lend(lenders, datetime.max))
    assert script.released == ["here0", "desk1"]
