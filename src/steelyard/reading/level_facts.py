"""Facts that belong to a level of a study, not to the whole of it: limits, links, settings in force.

A page shows the facts of one trial. Where starts of other levels had other values, these are shown by level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from steelyard.analysis.treatments import NODES, label
from steelyard.model.facts import (
    CAVEAT,
    MACHINE,
    PROMISE,
    emulated_processor,
    isolation,
    of_machines,
    of_systems,
    role_of,
)
from steelyard.model.named_level import Level
from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store

OF_LEVELS: Final = ("limit_", "link", "node_disk_bytes", "vm_memory", "vm_processors", "dilation")
"""Prefixes of the names of facts that a level determines: with one start of each level nothing else separates them from
those that differ from start to start, such as free memory."""
VIRTUAL: Final = "virtual machine"
OF_STORES: Final = (
    "It does not say which would be faster under the same promise: the systems do not promise the same for a write "
    "that they acknowledge"
)
OF_SETTINGS: Final = (
    "A difference may be the price of a promise: levels do not promise the same for a write that they acknowledge"
)
Facts = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class LevelFact:
    """One value of a fact, and the levels whose starts had it."""

    name: str
    value: str
    levels: tuple[str, ...]


def facts_of_sites(store: Store, records: Iterable[TrialRecord]) -> Mapping[str, Mapping[str, str]]:
    """Site to the facts of the first database node of its first trial that has any."""
    of_sites: dict[str, Mapping[str, str]] = {}
    for record in records:
        if not of_sites.get(site := record.settings.site.name):
            of_sites[site] = of_a_database(store.facts(record))
    return of_sites


def facts_of_machines(store: Store, records: Iterable[TrialRecord]) -> Mapping[str, Mapping[str, str]]:
    """Machine of a laboratory to its facts, or to those of a database node of its first trial that has any; empty if
    all trials were measured by one laboratory."""
    first = store.first_facts(records)
    if len(first) < 2:
        return {}
    return {
        machine or "not known": facts.get(MACHINE) or of_a_database(of_machines(facts))
        for machine, facts in sorted(first.items())
    }


def emulated(store: Store, records: Sequence[TrialRecord]) -> bool:
    """Whether processors of any start on virtual machines were emulated; one trial of each such start is read."""
    virtual = {site for site, facts in facts_of_sites(store, records).items() if isolation(facts) == VIRTUAL}
    starts = {record.start: record for record in records if record.settings.site.name in virtual}
    machines = (of_machines(store.facts(record)).values() for record in starts.values())
    return any(emulated_processor(facts) for nodes in machines for facts in nodes)


class OfSystems(NamedTuple):
    """What the systems under test say of themselves."""

    unlike: str
    """Words for the answer, if they do not promise the same; otherwise empty."""
    caveats: tuple[str, ...]
    """Then also with what each promises."""


def of_systems_themselves(store: Store, records: Sequence[TrialRecord]) -> OfSystems:
    """What the systems under test say of themselves. One trial is read of each settings of a system."""
    of_settings = {repr(record.settings.system): record for record in records}
    clusters = (of_systems(store.facts(record)).values() for record in of_settings.values())
    texts = [facts for of_nodes in clusters for facts in of_nodes]

    def beginning_with(beginning: str) -> tuple[str, ...]:
        sentences = (text for facts in texts for name, text in facts.items() if name.startswith(beginning))
        return tuple(dict.fromkeys(sentences))

    promises, caveats = beginning_with(PROMISE), beginning_with(CAVEAT)
    if len(promises) < 2:
        return OfSystems("", caveats)
    several = len({record.settings.system.name for record in records}) > 1
    return OfSystems(OF_STORES if several else OF_SETTINGS, (" ".join(promises), *caveats))


def level_facts(store: Store, records: Iterable[TrialRecord]) -> tuple[LevelFact, ...]:
    """Facts of database nodes that differ between levels of hard-to-change factors, sizes of clusters aside; one trial
    of each start is read. Raises StoreError."""
    starts = {record.start: record for record in records}
    levels = {record.start: _levels(record) for record in starts.values()}
    if len(set(levels.values())) < 2:
        return ()
    return differing([(levels[start], store.facts(record)) for start, record in starts.items()])


def differing(starts: Sequence[tuple[str, Facts]]) -> tuple[LevelFact, ...]:
    """Facts that differ between levels and not within one; `starts`: the level of each, and its facts. Pure."""
    several = len({level for level, _ in starts}) < len(starts)
    values: dict[str, dict[str, set[str]]] = {}
    for level, facts in starts:
        for name, value in of_a_database(facts).items():
            values.setdefault(name, {}).setdefault(level, set()).add(value)
    rows = []
    for name, by_level in sorted(values.items()):
        steady = all(len(each) == 1 for each in by_level.values())
        if not steady or not (several or name.startswith(OF_LEVELS)):
            continue
        levels: dict[str, list[str]] = {}
        for level in dict.fromkeys(level for level, _ in starts):
            levels.setdefault(next(iter(by_level.get(level, {"none"}))), []).append(level)
        if len(levels) > 1:
            rows += [LevelFact(name, value, tuple(sorted(of))) for value, of in levels.items()]
    return tuple(rows)


def _levels(record: TrialRecord) -> str:
    hard: dict[str, Level] = {
        name: level for name, level in record.treatment.items() if name in record.hard and name not in NODES
    }
    return label(hard) if hard else ""


def of_a_database(facts: Facts) -> dict[str, str]:
    """Facts of the first database node and of the system on it; those of the machine, where nothing else is known."""
    machines = of_machines(facts)
    first = next((node for node in sorted(machines) if role_of(node, facts) == "database"), MACHINE)
    return {**machines.get(first, {}), **of_systems(facts).get(first, {})}
