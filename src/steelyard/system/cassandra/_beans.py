"""Calls to Cassandra's management beans (flush, import, decommission, cleanup): one small Java process for all nodes,
where `nodetool` needs a large one for each. Its sources, with that of the probe jmx, are compiled once, by the compiler
that is among Cassandra's own jars."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node import fetch
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.cassandra._jars import Say, fault
from steelyard.system.cassandra._java import Java

SOURCES = ("Beans.java", "Watch.java")
COMPILER_JAR = "ecj-"
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
COMPILE_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 120.0


async def ensure(folder: Path, java: Java, jars: Sequence[Path], say: Say) -> Path:
    """Folder of the compiled classes, below `folder`. Raises SystemFault if there is no compiler or it fails."""
    sources = {name: (resources.files(__package__) / name).read_bytes() for name in SOURCES}
    compiler = next((jar for jar in jars if jar.name.startswith(COMPILER_JAR)), None)

    async def compiled(into: Path) -> None:
        if compiler is None:
            raise SystemFault("ecj not found among Cassandra's jars", "use a complete release", system="cassandra")
        say("compiling the client of Cassandra's management beans")
        for name, source in sources.items():
            (into / name).write_bytes(source)
        words = ["-11", "-d", str(into), *(str(into / name) for name in SOURCES)]
        argv = [str(java.path), "-XX:TieredStopAtLevel=1", "-cp", str(compiler), COMPILER, *words]
        await run(None, argv, timeout_s=COMPILE_TIMEOUT_S)

    name = f"beans-{hashlib.sha256(b''.join(sources.values())).hexdigest()[:12]}"
    return await fetch.once(folder, name, fault, compiled)


async def call(
    java: Path, classes: Path, node: Node, words: Sequence[str], timeout_s: float = CALL_TIMEOUT_S
) -> tuple[str, ...]:
    """Make one call (see Beans.java) from a node's network, without charging it to the node; `java`, `classes` and the
    files of passwords are as the node sees them. Returns the lines that it printed. Raises SystemFault if a node
    refuses or does not answer."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx32M"]
    try:
        argv = [str(java), *options, "-cp", str(classes), "Beans", *words]
        done = await run(node, argv, timeout_s=timeout_s, watch=True)
    except CommandFailed as error:
        reason = error.stderr_tail.strip()[-400:] or error.message
        raise SystemFault(f"{node.name}: {words[0]}: {reason}", node=node.name, system="cassandra") from error
    return tuple(done.stdout.decode().splitlines())
