"""Processor limits of a start: lifted until the cluster is warm, then in force, and recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steelyard.lab import cluster as cluster_module
from steelyard.lab import processor_limits
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.leases.lease import Lease
from steelyard.model.errors import SteelyardError
from steelyard.model.trial import Phase
from steelyard.node.base import Node
from steelyard.progress.events import Silent, TimeLeft
from steelyard.store import Store, StoreWriter
from steelyard.store.journal import ProcessorsLimited, StartReady
from tests.unit.lab.fakes import FakeParts, FakeSite, Script, plan_of, study, without_waiting


class ThrottlingSite(FakeSite):
    """Notes what it is told, beside what was driven by then."""

    limits = frozenset({"cpus"})
    told: list[tuple[bool, int]]
    reports = "0.4"

    async def throttle(self, lease: Lease, limited: bool) -> None:
        self.told.append((limited, len(self.script.driven)))

    async def facts(self, node: Node) -> dict[str, str]:
        return {"limit_cpus": self.reports if self.told and self.told[-1][0] else "none"}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    monkeypatch.setattr(cluster_module, "LIMIT_SETTLE_S", 0.0)
    monkeypatch.setattr(cluster_module.gauge, "wanted", lambda limits: False)
    return Script(tmp_path)


def conduct(script: Script, site: FakeSite, monkeypatch: pytest.MonkeyPatch, node: dict[str, Any]) -> Outcome:
    monkeypatch.setattr(FakeParts, "site", lambda self, settings: site)
    chosen = study(data={"state": "continue"}, node=node, factors={}, design={"starts": 1, "trials": 2})
    plan = plan_of(chosen)
    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script)
        conductor = Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        return asyncio.run(conductor.run())


def throttling(script: Script) -> ThrottlingSite:
    site = ThrottlingSite(script)
    site.told = []
    return site


def test_limits_are_in_force_from_when_the_cluster_is_warm(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, monkeypatch, {"cpus": 0.4}).valid == 2
    assert [limited for limited, _ in site.told] == [False, True]
    lifted, limited = (driven for _, driven in site.told)
    assert lifted == 0
    assert [order["action"] for order in script.driven[:limited]] == ["populate"]
    assert [order["action"] for order in script.driven[limited:]] == ["load", "load"]
    store = Store(script.folder / "store" / "fake")
    first, second = store.trials()
    assert [phase.phase for phase in first.phases].index(Phase.LIMIT) > [phase.phase for phase in first.phases].index(
        Phase.POPULATE
    )
    assert Phase.LIMIT not in [phase.phase for phase in second.phases]
    assert store.facts(second)["n1"] == {"limit_cpus": "0.4", processor_limits.FROM: "warm"}
    events = [entry.event for entry in store.journal()]
    (event,) = [one for one in events if isinstance(one, ProcessorsLimited)]
    assert event.cpus == {"n1": 0.4}
    assert next(place for place, one in enumerate(events) if isinstance(one, StartReady)) < events.index(event)


def test_limits_from_the_start_are_left_alone(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, monkeypatch, {"cpus": 0.4, "cpus_from": "start"}).valid == 2
    assert site.told == []
    store = Store(script.folder / "store" / "fake")
    assert processor_limits.FROM not in store.facts(store.trials()[0])["n1"]
    assert not [entry for entry in store.journal() if isinstance(entry.event, ProcessorsLimited)]


def test_without_limits_nothing_is_told(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, monkeypatch, {}).valid == 2
    assert site.told == []


def test_a_limit_that_is_not_in_force_is_a_fault_of_the_laboratory(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = throttling(script)
    site.reports = "none"
    with pytest.raises(SteelyardError, match="the site reports none of n1"):
        conduct(script, site, monkeypatch, {"cpus": 0.4})
    assert script.leases == script.released


def test_a_site_that_cannot_set_limits_says_how_to_go_on(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SteelyardError, match="cannot set the processor limits of nodes that run") as caught:
        conduct(script, FakeSite(script), monkeypatch, {"cpus": 0.4})
    assert 'node.cpus_from = "start"' in caught.value.hint
