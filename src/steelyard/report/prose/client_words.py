"""What the methods section says of the client's settings: those that the system's protocol has."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.format import listed
from steelyard.model.facts import PROTOCOL, of_systems
from steelyard.model.study import Study
from steelyard.wire.order import TARGETS


def consistency(study: Study, facts: Mapping[str, Mapping[str, str]]) -> str:
    """`Reads asked for consistency ONE, writes for QUORUM`; empty if the one system of the study speaks a protocol
    without consistency levels. `facts`: by node; stores without the fact of the protocol are of CQL."""
    names = ("read_consistency", "write_consistency")
    spoken = {of_node.get(PROTOCOL, "") for of_node in of_systems(facts).values()}
    without = [name for name in spoken if name in TARGETS and not set(names) & set(TARGETS[name].client)]
    if without and len(study.values_of(("system", "system.name"), study.system.name)) == 1:
        return ""
    reads, writes = (
        listed([str(level) for level in study.values_of([f"load.{name}"], getattr(study.load, name))], "or")
        for name in names
    )
    return f"Reads asked for consistency {reads}, writes for {writes}"
