"""Calls of Cassandra's own `nodetool`, as cheap as a Java program can be: an archive of classes, the fast compiler."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.cassandra._config import Folders
from steelyard.system.cassandra._java import Java, module_options

MAIN = "org.apache.cassandra.tools.NodeTool"
TIMEOUT_S = 120.0


def argv(
    java: Java, jars: Sequence[Path], node: Node, port: int, words: Sequence[str], archive: Sequence[str]
) -> list[str]:
    """Command line of one call."""
    folders = Folders(node.folder)
    return [
        str(java.path),
        *archive,
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xmx96M",
        *module_options(),
        f"-Duser.home={folders.root / 'tmp'}",
        f"-Dlogback.configurationFile={folders.conf / 'logback-tools.xml'}",
        "-cp",
        os.pathsep.join(str(jar) for jar in jars),
        MAIN,
        "-h",
        node.address,
        "-p",
        str(port),
        *words,
    ]


def write(node: Node) -> None:
    """The silent logging that the tool is told to use."""
    text = (resources.files(__package__) / "logback-tools.xml").read_text(encoding="utf-8")
    (Folders(node.folder).conf / "logback-tools.xml").write_text(text, encoding="utf-8")


async def call(
    java: Java, jars: Sequence[Path], node: Node, port: int, words: Sequence[str], archive: Sequence[str] = ()
) -> str:
    """What the tool printed. Not charged to the node. Raises SystemFault if the node refuses or does not answer."""
    try:
        done = await run(node, argv(java, jars, node, port, words, archive), timeout_s=TIMEOUT_S, watch=True)
    except CommandFailed as error:
        raise SystemFault(
            f"{node.name}: nodetool {' '.join(words)}: {error.stderr_tail.strip()[-400:] or error.message}",
            node=node.name,
            system="cassandra",
        ) from error
    return done.stdout.decode(errors="replace")
