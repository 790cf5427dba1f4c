"""A lease that is handed on from start to start, and given back at the end whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from steelyard.lab.conductor import Conductor
from steelyard.lab.lending import Lending
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError, SystemFault
from steelyard.progress.events import Silent, TimeLeft
from steelyard.site.base import Request, Reuses
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
    site, settings = HandingOn(script), plan_of(study()).trials[0].settings
    assert isinstance(site, Reuses)
    until = datetime.max

    async def body() -> None:
        lending = Lending()
        first = await lending.lend(site, settings, Request("s", 2), until)
        await lending.give_back(site, settings, first, keep=True)
        assert script.released == []
        second = await lending.lend(site, settings, Request("s", 4), until)
        assert (script.released, second.id) == ([first.id], "lease1")
        await lending.give_back(site, settings, second, keep=True)
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
        lending, site, settings = Lending(), Stuck(script), plan_of(study()).trials[0].settings
        lease = await lending.lend(site, settings, Request("s", 1), datetime.max)
        async with lending.session():
            await lending.give_back(site, settings, lease, keep=True)
            raise SystemFault("it died")

    with pytest.raises(SystemFault) as caught:
        asyncio.run(body())
    assert caught.value.__notes__ == ["while the lease was taken back: the host is gone"]
