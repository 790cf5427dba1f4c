"""Connections to machines by the user's own ssh: one control connection for each, and errors with a hint.

Keys, agent, jump machines and names come from the user's ssh_config. Host keys are always checked; nothing is ever
asked for at a terminal. The control connection ends some time after the last command, so a killed conductor
leaves none behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import socket
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node.command import Completed, run
from steelyard.site.ssh.inventory import Machine

SSH = "ssh"
CONNECT_TIMEOUT_S = 15
ALIVE_INTERVAL_S = 5
ALIVE_MISSED = 6
"""Unanswered questions, ALIVE_INTERVAL_S apart, after which a machine counts as gone."""
PERSIST_S = 120
"""Time for which the control connection outlives its last command."""
COMMAND_TIMEOUT_S = 60.0
"""Time limit for a short command on a machine that may be slow and far away."""
CONTROL_TIMEOUT_S = 10.0
CONTROL_PATH = "ControlPath="
NO_CONNECTION = 255
"""Exit code of ssh itself; any other is the command's."""
LONGEST_SOCKET = 80
"""Bytes of a socket's path, of 107, that leave room for ssh's suffix."""

HINTS: Sequence[tuple[str, str, str]] = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its key has changed",
        "if it was reinstalled, `{forget}`, connect once by hand (`ssh {way}`) and compare the key",
    ),
    (
        "Host key verification failed",
        "its key is not known here",
        "connect once by hand, `ssh {way}`, and compare the key that it shows",
    ),
    (
        "Permission denied",
        "it refuses this user",
        "`ssh-copy-id {way}`, and `ssh-add` if the key has a passphrase; the user is `user` in the inventory",
    ),
    (
        "Could not resolve hostname",
        "its name does not resolve",
        "give `connect` or `address` in the inventory, or an entry in ssh_config",
    ),
    (
        "Connection refused",
        "it is up, but sshd does not answer",
        "on it, as root: systemctl enable --now ssh; or another `port` in the inventory",
    ),
    (
        "timed out",
        "it does not answer",
        "check that it is switched on and in this network, for example with `ping`",
    ),
    (
        "No route to host",
        "it does not answer",
        "check that it is switched on and in this network, for example with `ping`",
    ),
    (
        "Network is unreachable",
        "no route to its network",
        "check `ip route` on this machine",
    ),
    (
        "too long for Unix domain socket",
        "the path of the control socket is too long",
        "set XDG_RUNTIME_DIR or TMPDIR to a short path",
    ),
)
"""Texts of ssh's errors, with their meaning and a hint."""


class Unreachable(SiteError):
    """A machine that cannot be connected to."""


@dataclass(frozen=True)
class Connection:
    """Path of commands to one machine."""

    name: str
    """The machine's name in the inventory, for messages."""
    argv: tuple[str, ...]
    """ssh with its options and its destination: one more word is the command, for a shell there."""
    way: str
    """The destination as a person types it."""

    async def shell(
        self,
        script: str,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float = COMMAND_TIMEOUT_S,
        name: str = "steelyard",
    ) -> Completed:
        """Run a script of plain sh on the machine, without the mark of a lease; `name` is its name in the table of
        processes. Raises Unreachable; a script that fails is the caller's to judge."""
        words = shlex.join(["sh", "-c", script, name, *arguments])
        try:
            done = await run(None, [*self.argv, words], timeout_s=timeout_s, stdin=stdin, check=False)
        except CommandFailed as error:
            raise self._not_run(error, timeout_s) from error
        if done.exit_code == NO_CONNECTION:
            raise self.unreachable(done.stderr.decode(errors="replace"))
        return done

    def _not_run(self, error: CommandFailed, timeout_s: float) -> Unreachable:
        if error.exit_code is None:
            return Unreachable(
                f"{self.name} did not answer within {timeout_s:g} s", f"check whether it is very busy: `ssh {self.way}`"
            )
        return Unreachable(f"ssh cannot be run: {error.stderr_tail}", "as root: apt-get install -y openssh-client")

    def unreachable(self, stderr: str) -> Unreachable:
        """The error for ssh's output."""
        for sign, meaning, template in HINTS:
            if sign in stderr:
                hint = template.format(way=self.way, forget=_forgetting(stderr, self.argv[-1]))
                return Unreachable(f"{self.name} cannot be reached: {meaning}", hint)
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        return Unreachable(
            f"{self.name} cannot be reached: {lines[-1] if lines else 'the connection ended'}", f"try `ssh {self.way}`"
        )

    async def close(self) -> None:
        """End the control connection, if there is one. Idempotent."""
        *options, end_of_options, destination = self.argv
        argv = [*options, "-O", "exit", end_of_options, destination]
        with contextlib.suppress(CommandFailed):
            await run(None, argv, timeout_s=CONTROL_TIMEOUT_S, check=False)


def _forgetting(stderr: str, destination: str) -> str:
    """The command that forgets the former host key: of the name and in the file that ssh itself names, because aliases,
    ports and files of known hosts come from its configuration. Pure."""
    name = re.search(r"^Host key for (\S+) has changed", stderr, re.MULTILINE)
    file = re.search(r"^Offending .*key in (.+):\d+\s*$", stderr, re.MULTILINE)
    words = ["ssh-keygen", "-R", name[1] if name else destination, *(["-f", file[1]] if file else [])]
    return shlex.join(words)


def connection(machine: Machine, control: Path, ssh_config: str = "") -> Connection:
    """The connection to a machine; nothing is started. `control` is the path of its control socket."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(CONNECT_TIMEOUT_S),
        "ServerAliveInterval": str(ALIVE_INTERVAL_S),
        "ServerAliveCountMax": str(ALIVE_MISSED),
        "ControlMaster": "auto",
        "ControlPersist": str(PERSIST_S),
        CONTROL_PATH.removesuffix("="): _escaped(control),
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "PermitLocalCommand": "no",
        "RequestTTY": "no",
        "LogLevel": "ERROR",
    }
    argv = [SSH, *_destination_options(machine, ssh_config)]
    argv += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    way = f"{machine.user}@{machine.destination}" if machine.user else machine.destination
    port = f"-p {machine.port} " if machine.port else ""
    config = f"-F {ssh_config} " if ssh_config else ""
    return Connection(machine.name, (*argv, "--", machine.destination), f"{config}{port}{way}")


def of_node(name: str, prefix: Sequence[str], controls: Path | None = None) -> Connection:
    """The connection behind a leased node's prefix. `controls` is the folder of control sockets, where it may
    be another one than when the node was lent."""
    argv = []
    for word in prefix:
        moved = controls is not None and word.startswith(CONTROL_PATH)
        argv.append(f"{CONTROL_PATH}{_escaped(controls)}/{Path(word).name}" if moved and controls else word)
    return Connection(name, tuple(argv), prefix[-1])


def _escaped(path: Path) -> str:
    """A path in the form of ssh's options, in which percent signs are special."""
    return str(path).replace("%", "%%")


def _destination_options(machine: Machine, ssh_config: str) -> list[str]:
    words = ["-F", ssh_config] if ssh_config else []
    words += ["-l", machine.user] if machine.user else []
    return [*words, *(["-p", str(machine.port)] if machine.port else [])]


async def address(machine: Machine, ssh_config: str = "") -> str:
    """IP address of a machine: from the inventory, otherwise of the name that ssh connects to. Raises Unreachable."""
    if machine.address:
        return machine.address
    argv = [SSH, *_destination_options(machine, ssh_config), "-G", "--", machine.destination]
    name = machine.destination
    with contextlib.suppress(CommandFailed):
        done = await run(None, argv, timeout_s=CONTROL_TIMEOUT_S)
        settings: Mapping[str, str] = dict(
            line.partition(" ")[::2] for line in done.stdout.decode(errors="replace").splitlines()
        )
        name = settings.get("hostname", name)
    loop = asyncio.get_running_loop()
    try:
        known = await asyncio.wait_for(loop.getaddrinfo(name, None, type=socket.SOCK_STREAM), CONTROL_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        hint = "give `address` in the inventory: the IP address under which the other nodes reach it"
        raise Unreachable(f"{machine.name}: {name} has no address known to this machine", hint) from error
    return str(known[0][4][0]).partition("%")[0]


def control_folder() -> Path:
    """The folder of control sockets, of this user alone: created if need be. Raises SiteError."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    near = Path(runtime) / "steelyard" if runtime and os.access(runtime, os.W_OK | os.X_OK) else None
    for folder in (near, Path(tempfile.gettempdir()) / f"steelyard-{os.getuid()}"):
        if folder is not None and len(os.fsencode(folder)) < LONGEST_SOCKET:
            return _private(folder)
    return _private(Path("/tmp") / f"steelyard-{os.getuid()}")


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise SiteError(f"cannot create {folder} for ssh's control sockets: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SiteError(f"{folder} is not private to this user", f"remove it, or: chmod 700 {folder}")
    return folder
