"""Diagnosis of a node's server: whether it lives, its command line, and why it died."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.node import files, kept
from steelyard.node.base import Node
from steelyard.node.kept import Kept
from steelyard.system.cassandra._config import Folders

TAIL_LINES = 6
TAIL_BYTES = 65_536
MOST_LINES = 60
FRAME = re.compile(r"^\s*(at |\.\.\. \d+|$|WARNING: )")
"""Lines of a stack trace and of Java's own warnings, which are less informative than the lines around them."""
REFUSALS = ("Invalid yaml", "ConfigurationException", "YAMLException")
LOGS = ("stdout.log", "stderr.log", "system.log")


async def living(node: Node) -> Kept | None:
    """The running server of a node, if there is one."""
    return await kept.living(node, Folders(node.folder).process)


async def tail(node: Node, path: Path, lines: int) -> list[str]:
    """Last lines of a file on a node; none if it does not exist."""
    content = await files.read(node, path, most=TAIL_BYTES)
    return content.decode(errors="replace").splitlines()[-lines:]


async def why_dead(node: Node, how: str = "ended") -> tuple[str, str]:
    """The likely reason why a server died, and a hint, from its logs, its limits, and `how` it ended as
    far as that is known."""
    folders = Folders(node.folder)
    lines = [line for name in LOGS for line in await tail(node, folders.logs / name, MOST_LINES)]
    text = "\n".join(lines)
    telling = [line.strip() for line in lines if not FRAME.match(line)][-TAIL_LINES:]
    last = f"; last lines: {' | '.join(telling)}" if telling else "; it wrote nothing"
    if (kills := kept.memory_kills(node)) > 0:
        limit = f" of {node.memory_mb} MB" if node.memory_mb else ""
        return f"killed by the memory limit{limit} ({kills} kills)", "raise node.memory_mb or lower system.heap_mb"
    if "OutOfMemoryError" in text:
        return f"Java ran out of memory{last}", "raise system.heap_mb"
    if "Address already in use" in text or "in use by another process" in text:
        return f"a port is in use{last}", "another Cassandra uses the address: run `steelyard clean`, or set the ports"
    if any(mark in text for mark in REFUSALS):
        return f"it refused its configuration{last}", "correct system.yaml"
    return f"{how}, for an unknown reason{last}", f"read {folders.logs}"


async def command_line(node: Node) -> tuple[str, ...]:
    """The command line of the running server, as the kernel reports it; empty if it is not running."""
    server = await living(node)
    return () if server is None else server.argv


async def collector(node: Node) -> str:
    """The collector in force, as named in the virtual machine's first log line: serial, g1, ..."""
    content = await files.read(node, Folders(node.folder).logs / "gc.log")
    first_line = next((line for line in content.decode(errors="replace").splitlines() if "Using " in line), "")
    return first_line.rpartition("Using ")[2].strip().lower() or "unknown"
