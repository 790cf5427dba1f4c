"""The agent on a machine: brought once under a name with its checksum, and of the conductor's own version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from steelyard import __version__
from steelyard.model.errors import EngineError, SiteError
from steelyard.node import agents
from steelyard.node.agent import PROGRAM
from steelyard.site.ssh import scripts
from steelyard.site.ssh.connection import Connection

BRING_TIMEOUT_S = 600.0
"""Time limit for bringing 10 MB over a slow link."""
DIGEST_CHARS = 16
CHECK = '[ -x "$1" ] && exec "$1" --version'


@dataclass(frozen=True)
class AgentProgram:
    """An agent on this machine for machines of one architecture."""

    path: Path
    digest: str


def program(machine: str, architecture: str) -> AgentProgram:
    """The agent for an architecture as printed by `uname -m`. Raises SiteError with the hint."""
    try:
        path = agents.find(architecture)
        status = path.stat()
        return AgentProgram(path, _digest(path, status.st_mtime_ns, status.st_size))
    except EngineError as error:
        raise SiteError(f"{machine}: {error.message}", error.hint) from error
    except OSError as error:
        raise SiteError(f"{machine}: cannot read the agent {error.filename}: {error.strerror}") from error


@lru_cache(maxsize=8)
def _digest(path: Path, changed_ns: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_on(folder: Path, agent: AgentProgram) -> Path:
    """Path of the agent on a machine with this folder of Steelyard's."""
    return folder / "bin" / f"{PROGRAM}-{agent.digest[:DIGEST_CHARS]}"


async def bring(connection: Connection, folder: Path, agent: AgentProgram) -> str:
    """Path of the agent on a machine; sent there if missing. Raises SiteError if it does not run there or is of
    another version."""
    target = str(path_on(folder, agent))
    done = await connection.shell(CHECK, target)
    if done.exit_code != 0:
        content = agent.path.read_bytes()
        arguments = (target, str(len(content)), agent.digest)
        sent = await connection.shell(scripts.BRING, *arguments, stdin=content, timeout_s=BRING_TIMEOUT_S)
        if sent.exit_code != 0:
            why = sent.stderr.decode(errors="replace").strip()
            raise SiteError(f"{connection.name}: the agent could not be copied there: {why}", "check its disk space")
        done = await connection.shell(CHECK, target)
    version = done.stdout.decode(errors="replace").strip()
    if done.exit_code != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise SiteError(
            f"{connection.name}: {agent.path.name} does not run there: {why}",
            f"if it is not a static program: {agents.HINT}",
        )
    if version != f"{PROGRAM} {__version__}":
        raise SiteError(
            f"{connection.name}: {agent.path} is {version!r}, but this is steelyard {__version__}",
            f"agent and conductor must be of one version; {agents.HINT}",
        )
    return target
