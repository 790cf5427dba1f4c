"""Confounders of a comparison: differences in settings, versions, machines and time apart from the compared factor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from steelyard.model.facts import CAVEAT, of_machines, of_systems, role_of
from steelyard.model.study import ALIASES
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

Kind = Literal["asked", "setting", "limit", "version", "machine", "system", "site", "time"]
Facts = Mapping[str, Mapping[str, str]]
"""Name of a node, `system:<node>` or `machine` to its facts."""

PASSING = frozenset({"address", "network", "memory_available_mb", "setting initial_token", "seed", "peers"})
"""Facts that differ between starts or nodes of the same machine and version, or follow from the number of nodes."""
_LEASE = re.compile(r"/nodes/[0-9a-f]{6,}/n\d+")
_ARCHIVE = re.compile(r"-XX:SharedArchiveFile=\S+")
"""Where the classes of these jars are archived: says no more than the hash of the jars."""
_ADDRESSES = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:[,; ]+(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?)*")
LONGEST_TEXT = 60
OF_THE_BUILD = ("system.source", "system.version", "system.jars")
"""Factors that are the system's build: its versions and jars follow from them."""
FACTS_OF = {
    "node.memory_mb": ("limit_memory_bytes",),
    "node.cpus": ("limit_cpus",),
    "node.cpus_from": ("limit_cpus_from",),
    "node.disk_rates_from": ("limit_disk_rates_from",),
    "node.dilation": ("dilation", "service-us"),
    "system.heap_mb": ("heap",),
    "system.gc": ("collector",),
    "system.native_port": ("setting native_transport_port",),
}
"""Settings whose facts have other names."""
OPTIONS = "jvm options"
"""The fact that any setting of a system may be part of."""
UNIT = re.compile(r"_(s|ms|kb|mb|gb)$")
"""End of a setting's name that the name of its fact lacks."""
JARS = "jars"
"""The fact that is a hash of the system's jars; a cluster that exists does not report it."""
WARMED_UP = "servers warmed up"


class Difference(Value):
    """One difference between the sides."""

    kind: Kind
    """asked: the compared factor, or a consequence of it; time: not measured side by side."""
    name: str
    a: tuple[str, ...]
    """Every value on side a; empty if it has none."""
    b: tuple[str, ...]

    def words(self) -> str:
        """`cores 2, on the other side 4`, as people read it."""
        return f"{self.name}: {_shown(self.a)} -> {_shown(self.b)}"


def _shown(values: Sequence[str]) -> str:
    text = " or ".join(values) or "nothing"
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def apart(
    a: Sequence[TrialRecord], b: Sequence[TrialRecord], facts_a: Sequence[Facts], facts_b: Sequence[Facts],
    asked: Iterable[str],
) -> tuple[Difference, ...]:  # fmt: skip
    """All differences, those asked for first. `facts`: of one or more trials per side; `asked`: the compared factors.

    A setting varies within a side if a factor of both is not fixed, so sets of values are compared.
    """
    named = set(asked)
    paths = {ALIASES.get(name, name) for name in named}
    builds = {name for one in (*a, *b) for name in one.versions if name == one.settings.system.name}
    differing = [
        Difference(kind=kind, name=name, a=tuple(sorted(of_a.get(name, ()))), b=tuple(sorted(of_b.get(name, ()))))
        for (kind, of_a), (_, of_b) in zip(_known(a, facts_a), _known(b, facts_b), strict=True)
        for name in ({**of_a, **of_b} if of_a and of_b else ())
        if of_a.get(name) != of_b.get(name)
    ]
    differences = [
        one.model_copy(update={"kind": "asked"})
        if (one.kind == "setting" and _follows(one.name, paths))
        or (one.kind in ("machine", "system") and _says(one.name, paths))
        or (not named.isdisjoint(OF_THE_BUILD) and _of_the_build(one, builds))
        else one
        for one in differing
        if one.name != JARS or (one.a and one.b)
    ]
    differences += _time(a, b)
    return tuple(sorted(differences, key=lambda one: one.kind != "asked"))


def _known(side: Sequence[TrialRecord], facts: Sequence[Facts]) -> list[tuple[Kind, dict[str, set[str]]]]:
    """Recorded properties of a side, by kind: name to all values."""
    return [
        ("setting", _sets(_flat(one.settings.root) for one in side)),
        ("setting", {WARMED_UP: {"no" if one.server_warm_up is None else "yes" for one in side}}),
        ("limit", _sets(_flat({"limits": one.limits.model_dump()}) for one in side)),
        ("version", _sets(one.versions for one in side)),
        ("site", {"the nodes share": {", ".join(one.shares) or "nothing" for one in side}}),
        ("machine", _facts(facts, system=False)),
        ("system", _facts(facts, system=True)),
    ]


def _flat(tree: Mapping[str, Any], before: str = "") -> dict[str, str]:
    by_name: dict[str, str] = {}
    for name, value in tree.items():
        path = f"{before}.{name}" if before else name
        if isinstance(value, Mapping) and value:
            by_name |= _flat(value, path)
        elif value is not None:
            by_name[path] = value if isinstance(value, str) else json.dumps(value)
    return by_name


def _sets(each: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    by_name: dict[str, set[str]] = {}
    for values in each:
        for name, value in values.items():
            by_name.setdefault(name, set()).add(value)
    return by_name


def _facts(side: Sequence[Facts], *, system: bool) -> dict[str, set[str]]:
    """Facts by name over all nodes of a kind, without those that change between starts."""
    by_name: dict[str, set[str]] = {}
    for facts in side:
        for who, node_facts in (of_systems(facts) if system else of_machines(facts)).items():
            role = "load node: " if not system and role_of(who, facts) == "load" else ""
            for name, value in node_facts.items():
                if name not in PASSING and not name.startswith(("departs:", CAVEAT)):
                    plain = _ADDRESSES.sub("ADDRESS", _LEASE.sub("/nodes/NODE", _ARCHIVE.sub("", value)))
                    by_name.setdefault(f"{role}{name}", set()).add(plain)
    return by_name


def _follows(path: str, asked: set[str]) -> bool:
    """Whether a setting is a compared factor, or belongs to the plug-in that such a factor chooses."""
    chosen = {name.removesuffix(".name") for name in asked if name.endswith(".name")}
    return path in asked or path.split(".", 1)[0] in chosen


def _says(fact: str, asked: set[str]) -> bool:
    """Whether a fact is what a compared setting became on the node: `limit_memory_bytes` of `node.memory_mb`,
    `setting concurrent_reads` of `system.yaml.concurrent_reads`, `setting commitlog_total_space` of
    `system.commitlog_total_space_mb`, `service-us` of `system.service_us`."""
    if any(fact in FACTS_OF.get(path, ()) for path in asked):
        return True
    names = {path.rpartition(".")[2] for path in asked if path.startswith("system.")}
    plain = fact.removeprefix("setting ").replace("-", "_")
    return bool(names) and (fact == OPTIONS or plain in names | {UNIT.sub("", name) for name in names})


def _of_the_build(difference: Difference, names_of_versions: set[str]) -> bool:
    """Whether a version or fact is that of the compared build: also a setting that the other build does not have."""
    if difference.kind == "version":
        return difference.name in names_of_versions
    its_own_setting = difference.name.startswith("setting ") and not (difference.a and difference.b)
    return difference.kind == "system" and (its_own_setting or difference.name in ("version", JARS))


def _time(a: Sequence[TrialRecord], b: Sequence[TrialRecord]) -> list[Difference]:
    """Sides that were measured one after the other: drift between them looks like an effect (Abedi and Brecht 2017)."""
    if not a or not b:
        return []
    spans = [(min(one.begun_s for one in side), max(one.ended_s or one.begun_s for one in side)) for side in (a, b)]
    if spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]:
        return []
    gap_h = max(spans[1][0] - spans[0][1], spans[0][0] - spans[1][1]) / 3600
    first, second = ("a", "b") if spans[0][0] < spans[1][0] else ("b", "a")
    between = f"{gap_h:.1f} h" if gap_h >= 1 else f"{60 * gap_h:.0f} min" if gap_h > 1 / 60 else "less than a minute"
    words = f"all of side {first} came before side {second}, {between} apart"
    return [Difference(kind="time", name="order", a=(words,), b=("not measured side by side",))]


def warnings(differences: Sequence[Difference]) -> tuple[str, ...]:
    """Warnings about differences, in sentences."""
    sentences = []
    what = {"setting": "settings", "version": "versions", "machine": "the machines", "system": "the system's facts"}
    counts = {words: sum(one.kind == kind for one in differences) for kind, words in what.items()}
    others = [f"{words} ({count})" for words, count in counts.items() if count]
    if others:
        sentences.append(
            f"The sides differ in more than what is compared: {', '.join(others)}. The change is of all of it together."
        )
    if any(one.name == WARMED_UP for one in differences):
        sentences.append(
            "The servers of one side were warmed up before the trials, those of the other were not: what their "
            "compilers had done by then is in the change."
        )
    time = next((one for one in differences if one.kind == "time"), None)
    if time is not None:
        sentences.append(
            f"The sides were not measured side by side: {time.a[0]}. Drift between them is in the change; one study "
            "with both as levels of a factor would not have it."
        )
    return tuple(sentences)
