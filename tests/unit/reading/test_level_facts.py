"""Facts that belong to a level: shown by level, where starts of other levels had other values."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steelyard.reading.level_facts import (
    OF_SETTINGS,
    OF_STORES,
    Facts,
    LevelFact,
    OfSystems,
    differing,
    level_facts,
    of_systems_themselves,
)
from steelyard.store import Store

BOARD, SERVER = "node.profile raspberry-pi-2", "node.profile unlimited"


def of_a_start(heap: str = "512M", **facts: str) -> dict[str, Any]:
    return {"n1": {"cores": "2", **facts}, "system:n1": {"heap": heap}, "l1": {"limit_cpus": "none"}}


def test_a_limit_of_one_level_is_not_that_of_all() -> None:
    starts: list[tuple[str, Facts]] = [
        (BOARD, of_a_start(limit_cpus="0.36")),
        (SERVER, of_a_start("4G", limit_cpus="none")),
    ]
    assert differing(starts) == (
        LevelFact("limit_cpus", "0.36", (BOARD,)),
        LevelFact("limit_cpus", "none", (SERVER,)),
    )
    # With a second start of a level, what the level determines is told from what varies.
    twice = differing([*starts, (SERVER, of_a_start("4G", limit_cpus="none"))])
    assert [(fact.name, fact.value) for fact in twice] == [
        ("heap", "512M"), ("heap", "4G"), ("limit_cpus", "0.36"), ("limit_cpus", "none"),
    ]  # fmt: skip


def test_what_varies_from_start_to_start_belongs_to_no_level() -> None:
    free = ((BOARD, "1"), (BOARD, "2"), (SERVER, "3"))
    assert differing([(level, of_a_start(memory_available_mb=text)) for level, text in free]) == ()


def test_what_a_level_lacks_is_none() -> None:
    starts: list[tuple[str, Facts]] = [
        (BOARD, of_a_start(link="802.11g: steelyard-agent link")),
        (SERVER, of_a_start()),
    ]
    assert [(fact.value, fact.levels) for fact in differing(starts)] == [
        ("802.11g: steelyard-agent link", (BOARD,)), ("none", (SERVER,)),
    ]  # fmt: skip


def test_sizes_alone_make_no_levels(store: Path) -> None:
    opened = Store(store)
    assert level_facts(opened, opened.trials()) == ()


def test_what_systems_promise_is_said_where_they_differ() -> None:
    promises = {
        name: {"promise: it": f"{name} keeps it.", "caveat: Java": "Java is old."} for name in ("a", "b", "b 2")
    }

    class Kept:
        """Facts of one node for each system."""

        def facts(self, record: Any) -> dict[str, Any]:
            return {"system:n1": promises[record.settings.system.kept]}

    def of(*names: str) -> OfSystems:
        systems = [SimpleNamespace(name=name[0], kept=name) for name in names]
        records: Any = [SimpleNamespace(settings=SimpleNamespace(system=system)) for system in systems]
        store: Any = Kept()
        return of_systems_themselves(store, records)

    assert of("a", "a") == ("", ("Java is old.",))
    assert of("a", "b", "a") == (OF_STORES, ("a keeps it. b keeps it.", "Java is old."))
    assert of("b", "b 2") == (OF_SETTINGS, ("b keeps it. b 2 keeps it.", "Java is old."))
