"""Keys of a lease's own, and settings of ssh in which the user's own settings and keys play no part."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from steelyard.node.base import Node
from steelyard.node.command import run

TIMEOUT_S: Final = 60.0
CONFIG: Final = """\
User {user}
IdentityFile "{key}"
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile "{known_hosts}"
GlobalKnownHostsFile /dev/null
HostKeyAlgorithms ssh-ed25519
KexAlgorithms curve25519-sha256
"""


async def make(caller: Node, path: Path) -> None:
    """Make a pair of keys. Raises CommandFailed."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "steelyard", "-f", str(path)]
    await run(caller, argv, timeout_s=TIMEOUT_S)


def public(path: Path) -> str:
    """Kind and number of the public part of a pair of keys."""
    return " ".join(path.with_suffix(".pub").read_text(encoding="ascii").split()[:2])


def ssh_config(user: str, key: Path, known: Path) -> str:
    """Settings of ssh for a user, a key and a list of known machines. Pure."""
    return CONFIG.format(user=user, key=key, known_hosts=known)
