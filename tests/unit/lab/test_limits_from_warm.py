"""Limits of a start that begin when its cluster is warm: lifted until then, in force from then on, and recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steelyard.events.base import Silent
from steelyard.events.kept import DisksLimited, ProcessorsLimited, StartReady
from steelyard.events.shown import TimeLeft
from steelyard.lab import cluster as cluster_module
from steelyard.lab import limits_from_warm
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.leases.lease import Lease
from steelyard.model.errors import SteelyardError
from steelyard.model.node_limits import DISK_RATES, NodeLimits
from steelyard.model.trial import Phase
from steelyard.node.base import Node
from steelyard.store import Store, StoreWriter
from tests.unit.lab.fakes import FakeParts, FakeSite, Script, plan_of, study, without_waiting


class ThrottlingSite(FakeSite):
    """Notes what it is told, beside what was driven by then."""

    limits = frozenset({"cpus", *DISK_RATES})
    told: list[tuple[bool, int]]
    asked = NodeLimits()
    reports = "0.4"
    rate = "7000000"

    async def throttle(self, lease: Lease, limits: NodeLimits, *, limited: bool) -> None:
        self.asked = limits
        self.told.append((limited, len(self.script.driven)))

    async def facts(self, node: Node) -> dict[str, str]:
        limited = bool(self.told) and self.told[-1][0]
        rates = {"limit_disk_write_bytes_per_s": self.rate if limited else "none"} if self.asked.own_disk else {}
        return {"limit_cpus": self.reports if limited else "none", **rates}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    # Nodes that are none have nothing to settle or to be measured.
    monkeypatch.setattr(cluster_module, "LIMIT_SETTLE_S", 0.0)
    monkeypatch.setattr(cluster_module.gauge, "wanted", lambda limits: False)
    return Script(tmp_path)


def conduct(script: Script, site: FakeSite, node: dict[str, Any]) -> Outcome:
    chosen = study(data={"state": "continue"}, node=node, factors={}, design={"starts": 1, "trials": 2})
    plan = plan_of(chosen)
    with StoreWriter(script.folder / "store", "fake") as writer:
        writer.intend(chosen, "", plan)
        parts: Any = FakeParts(script, site_of=lambda script: site)
        conductor = Conductor(chosen, plan, writer, parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        return asyncio.run(conductor.run())


def throttling(script: Script) -> ThrottlingSite:
    site = ThrottlingSite(script)
    site.told = []
    return site


def test_limits_are_in_force_from_when_the_cluster_is_warm(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, {"cpus": 0.4}).valid == 2
    assert [limited for limited, _ in site.told] == [False, True]
    lifted, limited = (driven for _, driven in site.told)
    assert lifted == 0
    assert [order.action for order in script.driven[:limited]] == ["populate"]
    assert [order.action for order in script.driven[limited:]] == ["load", "load"]
    store = Store(script.folder / "store" / "fake")
    first, second = store.trials()
    assert [phase.phase for phase in first.phases].index(Phase.LIMIT) > [phase.phase for phase in first.phases].index(
        Phase.POPULATE
    )
    assert Phase.LIMIT not in [phase.phase for phase in second.phases]
    assert store.facts(second)["n1"] == {"limit_cpus": "0.4", limits_from_warm.PROCESSORS_FROM: "warm"}
    events = [entry.event for entry in store.journal()]
    (event,) = [one for one in events if isinstance(one, ProcessorsLimited)]
    assert event.cpus == {"n1": 0.4}
    assert next(place for place, one in enumerate(events) if isinstance(one, StartReady)) < events.index(event)


def test_rates_of_disks_begin_when_the_tables_are_filled(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are with the dilation; processors, which the study limits from the start, are not the site's to set."""
    site = throttling(script)
    node = {"disk_write_mb_per_s": 14.0, "dilation": 2.0, "disk_rates_from": "warm", "cpus": 0.4, "cpus_from": "start"}
    assert conduct(script, site, node).valid == 2
    assert [limited for limited, _ in site.told] == [False, True]
    assert [order.action for order in script.driven[: site.told[1][1]]] == ["populate"]
    assert (site.asked.disk_write_mb_per_s, site.asked.processors_from_warm) == (7.0, False)
    store = Store(script.folder / "store" / "fake")
    facts = store.facts(store.trials()[0])["n1"]
    assert facts[limits_from_warm.DISK_RATES_FROM] == "warm"
    assert limits_from_warm.PROCESSORS_FROM not in facts
    events = [entry.event for entry in store.journal()]
    assert [event.rates for event in events if isinstance(event, DisksLimited)] == [
        {"n1": {"limit_disk_write_bytes_per_s": 7_000_000.0}}
    ]
    assert not [event for event in events if isinstance(event, ProcessorsLimited)]


def test_a_rate_that_is_not_in_force_is_a_fault_of_the_laboratory(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = throttling(script)
    site.rate = "none"
    with pytest.raises(SteelyardError, match="reports no limit_disk_write_bytes_per_s of it") as caught:
        conduct(script, site, {"disk_write_mb_per_s": 14.0, "disk_rates_from": "warm"})
    assert 'node.disk_rates_from = "start"' in caught.value.hint


def test_limits_from_the_start_are_left_alone(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, {"cpus": 0.4, "cpus_from": "start"}).valid == 2
    assert site.told == []
    store = Store(script.folder / "store" / "fake")
    assert limits_from_warm.PROCESSORS_FROM not in store.facts(store.trials()[0])["n1"]
    assert not [entry for entry in store.journal() if isinstance(entry.event, ProcessorsLimited)]


def test_without_limits_nothing_is_told(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    site = throttling(script)
    assert conduct(script, site, {}).valid == 2
    assert site.told == []


def test_a_limit_that_is_not_in_force_is_a_fault_of_the_laboratory(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = throttling(script)
    site.reports = "none"
    with pytest.raises(SteelyardError, match="the limits of n1 were set, but the site reports no limit_cpus of it"):
        conduct(script, site, {"cpus": 0.4})
    assert script.leases == script.released


def test_a_site_that_cannot_set_limits_says_how_to_go_on(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SteelyardError, match="cannot set the limits of nodes that run") as caught:
        conduct(script, FakeSite(script), {"cpus": 0.4})
    assert 'node.cpus_from = "start"' in caught.value.hint
