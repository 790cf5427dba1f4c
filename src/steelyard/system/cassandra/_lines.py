"""Lines of releases, a row for each: what differs between them. Everything else holds for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from steelyard.model.facts import CAVEAT

VERSION_PATTERN = r"(5\.0\.\d+|4\.1\.\d+|3\.11\.\d+|3\.9|3\.0\.\d+)"
KEYS = "config_keys-{line}.txt"
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Line:
    """A line of releases."""

    name: str
    tried: str
    """The release that was tried, whose keys of `cassandra.yaml` are known and whose checksums are shipped."""
    mb: int
    """Size of the download, MB."""
    java: int
    """Major version of the Java that runs it here."""
    made_for: int
    """Major version of the newest Java that its releases support."""
    views: bool = True
    """Whether a node's state can be asked in CQL (`system_views`); otherwise by management beans and from its log."""
    units: bool = True
    """Whether sizes and times in `cassandra.yaml` have units, and seeds have ports."""
    archive: bool = True
    """Whether an archive of loaded classes is made: Java 13 and newer can."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Keys of `cassandra.yaml` under their names here, where the number has no unit."""
    yaml: Mapping[str, Any] = field(default_factory=dict)
    """Further keys that the laboratory writes."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the virtual machine."""
    maven: tuple[str, ...] = ()
    """Further options for Maven, for jars that the release needs and does not name."""
    lacks: frozenset[str] = frozenset()
    """Words of settings for what it has not."""
    departures: Mapping[str, str] = field(default_factory=dict)
    """Differences and gaps of this line, recorded with every trial."""

    @property
    def facts(self) -> dict[str, str]:
        """Facts about every node."""
        departures = {f"departs: {what}": how for what, how in self.departures.items()}
        if self.java == self.made_for:
            return departures
        sentence = f"Cassandra {self.name} ran on Java {self.java}; its releases were made for Java {self.made_for}."
        return {**departures, f"{CAVEAT}Java": sentence}

    @property
    def keys(self) -> frozenset[str]:
        """The keys of `cassandra.yaml` that it knows: the field names of its class Config."""
        return _keys(self.name)

    def written(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The laboratory's own keys, written as this line reads them, without those that it does not know. Pure."""
        there = {}
        for key, value in {**asked, **self.yaml}.items():
            if key in self.former:
                there[self.former[key]] = int(NUMBER.match(str(value))[0])  # type: ignore[index]
            elif key in self.keys:
                there[key] = value
        return there


@cache
def _keys(line: str) -> frozenset[str]:
    file = resources.files(__package__) / KEYS.format(line=line)
    return frozenset(file.read_text(encoding="utf-8").split())


FORMER = {
    "commitlog_sync_period": "commitlog_sync_period_in_ms",
    "commitlog_total_space": "commitlog_total_space_in_mb",
}
NO_ARCHIVE = {"class archive": "none: Java 11 can make none"}
WITHOUT_VIEWS = {
    "missing: metrics in CQL": "this line has no system_views: the probe cassandra reads nothing, the probe jmx does",
    "missing: connections": "a node's connections to its peers are not asked: tokens and log say who is up",
    "restored tables": "loaded as `nodetool refresh` does: their level and repair state are reset",
    "mapped files": "freed by the collector: Java 11 lacks the class by which this line frees them",
}
NOT_IN_3 = frozenset({"zstd", "unified"})


def _line_3(name: str, tried: str, mb: int, **others: Any) -> Line:
    """A line from before 4.0: made for Java 8, with a Thrift server that is not started."""
    return Line(
        name,
        tried,
        mb,
        java=11,
        made_for=8,
        views=False,
        units=False,
        archive=False,
        former=FORMER,
        yaml={"start_rpc": False},
        lacks=NOT_IN_3,
        departures={**NO_ARCHIVE, **WITHOUT_VIEWS},
        **others,
    )


LINES = (
    Line("5.0", "5.0.5", 66, java=17, made_for=17),
    Line("4.1", "4.1.9", 50, java=11, made_for=11, archive=False, lacks=frozenset({"unified"}), departures=NO_ARCHIVE),
    _line_3("3.11", "3.11.19", 31, maven=("-Dthrift",)),
    _line_3("3.9", "3.9", 48),
    # With epoll, this line's Netty fails every request on Java 11.
    _line_3("3.0", "3.0.8", 42, properties={"cassandra.native.epoll.enabled": "false"}),
)


def of(version: str) -> Line:
    """The line of a release. Raises ValueError for a version of none."""
    for line in LINES:
        if version == line.name or version.startswith(f"{line.name}."):
            return line
    raise ValueError(f"no line of Cassandra's releases has {version!r}: {', '.join(line.name for line in LINES)}")
