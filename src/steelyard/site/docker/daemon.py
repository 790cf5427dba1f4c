"""Docker daemon behind a lease: the one that runs on this machine, or one of Steelyard's own.

A daemon of our own is started with the first lease that needs it and stopped with the last, so that it takes no
processor while nodes of other sites are measured. There is one for the whole machine: everything that it is
(`/run/steelyard/docker`) carries its own mark instead of a lease's, by which it is found regardless of who started it.
It makes no packet filters and no bridge, so that other networks of the machine stay as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.node import fetch
from steelyard.node.command import run
from steelyard.node.folders import cache_folder
from steelyard.node.processor import RunningProgram, start_ticks
from steelyard.site.kernel import mountinfo
from steelyard.site.kernel.programs import program, search_path

MARKER = "STEELYARD_DAEMON"
"""Environment variable of our own daemon and its helpers; its value is the daemon's folder."""
LOOK_TIMEOUT_S = 15.0
COMMAND_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
STOP_GRACE_S = 20.0
KILL_TIMEOUT_S = 20.0
LOCK_TIMEOUT_S = 120.0
"""Longer than a start and a stop together."""
POLL_S = 0.05
LOG_TAIL_LINES = 3
LOCAL_SCHEME = "unix://"
REMOTE_SCHEMES = ("tcp://", "ssh://", "http://", "https://")
HOST_VARIABLE = "DOCKER_HOST"
"""Names the daemon that the user's client reaches, before every context of it."""
CONTEXT_VARIABLE = "DOCKER_CONTEXT"
"""Names the context, before the one that the user chose for good."""
HOST_HINT = f"unset {HOST_VARIABLE}, or name a socket of this machine: {LOCAL_SCHEME}/var/run/docker.sock"
PASSWORD = re.compile("//[^/@]*@")
"""User and password in an address."""
PROCESS_NAMES = frozenset({"dockerd", "containerd", "containerd-shim", "docker-init", "docker-proxy", "conmon"})
"""Names of a daemon's processes, cut to 15 characters as the kernel does."""


@dataclass(frozen=True)
class Daemon:
    """Path of commands to a daemon."""

    program: str
    """Path of its client."""
    address: str = ""
    """`unix:///...`; empty for podman, which has no daemon."""
    own: bool = False

    @property
    def client(self) -> tuple[str, ...]:
        """Beginning of every command for it."""
        return (self.program, "--host", self.address) if self.address else (self.program,)


@dataclass(frozen=True)
class Looked:
    """The daemon that the user's client reaches, or why there is none."""

    daemon: Daemon | None
    problem: str = ""
    hint: str = ""
    """Hint for the user; empty if the fix is to start a daemon."""


@dataclass(frozen=True)
class Own:
    """Places of our own daemon."""

    folder: Path
    """Socket, process id, log and running state; on a file system that a restart of the machine empties."""
    data: Path
    """Images and containers; kept, so that an image is imported once."""

    @property
    def address(self) -> str:
        """Address of its socket."""
        return f"{LOCAL_SCHEME}{self.folder / 'docker.sock'}"

    def argv(self, dockerd: str) -> list[str]:
        """Command line of the daemon: no setting of the machine's own Docker, no packet filter, no default bridge."""
        return [
            dockerd,
            *("--config-file", str(self.folder / "daemon.json")),
            *("--host", self.address),
            *("--data-root", str(self.data)),
            *("--exec-root", str(self.folder / "exec")),
            *("--pidfile", str(self.folder / "docker.pid")),
            *("--bridge", "none"),
            *("--containerd-namespace", "steelyard", "--containerd-plugins-namespace", "steelyard-plugins"),
            *("--log-level", "warn", "--shutdown-timeout", "5"),
            "--iptables=false",
            "--ip6tables=false",
            "--ip-masq=false",
            "--ip-forward=false",
            "--userland-proxy=false",
        ]


def ours() -> Own:
    """The places of this machine's daemon of our own."""
    return Own(lease_register.FOLDER / "docker", cache_folder() / "docker" / "data")


def running(client: str) -> Looked:
    """The daemon that runs on this machine and answers the user's client, `docker` or `podman`. Takes up to
    LOOK_TIMEOUT_S. Read-only."""
    path = program(client)
    if path is None:
        return Looked(None, f"program {client} not found")
    if client == "podman":
        answer = _call([path, "version", "--format", "{{.Client.Version}}"])
        return Looked(Daemon(path)) if answer.returncode == 0 else Looked(None, _last_line(answer.stderr))
    if wanted := os.environ.get(HOST_VARIABLE, ""):
        problem = _elsewhere(wanted) or answers(Daemon(path, wanted))
        named = f"{HOST_VARIABLE} = {shown(wanted)!r}: {problem}"
        return Looked(None, named, HOST_HINT) if problem else Looked(Daemon(path, wanted))
    asked = _call([path, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"])
    address = asked.stdout.strip() or f"{LOCAL_SCHEME}/var/run/docker.sock"
    if problem := _elsewhere(address):
        hint = f"unset {CONTEXT_VARIABLE}" if os.environ.get(CONTEXT_VARIABLE) else "docker context use default"
        return Looked(None, f"{shown(address)} (docker context): {problem}", hint)
    problem = answers(Daemon(path, address))
    return Looked(None, problem) if problem else Looked(Daemon(path, address))


def _elsewhere(address: str) -> str:
    """Reason why the daemon at an address cannot be on this machine; empty if it can. Pure."""
    if address.startswith(REMOTE_SCHEMES):
        return "a Docker reached over a network may be on another machine"
    if not address.startswith(f"{LOCAL_SCHEME}/"):
        return f"not the address of a socket, which is {LOCAL_SCHEME} and its absolute path"
    return ""


def shown(address: str) -> str:
    """An address without the user and the password that it may hold. Pure."""
    return PASSWORD.sub("//", address)


def answers(daemon: Daemon) -> str:
    """Reason why no daemon answers; empty if one does. Read-only."""
    answer = _call([*daemon.client, "version", "--format", "{{.Server.Version}}"])
    return "" if answer.returncode == 0 else _last_line(answer.stderr) or f"it exited with code {answer.returncode}"


def shows(daemon: Daemon, *words: str) -> bool:
    """Whether a command for a daemon succeeds. Takes up to LOOK_TIMEOUT_S; for commands that only read."""
    return _call([*daemon.client, *words]).returncode == 0


def _call(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=LOOK_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 1, "", f"no answer within {LOOK_TIMEOUT_S:g} s")
    except OSError as error:
        return subprocess.CompletedProcess(argv, 127, "", str(error))


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


async def ask(
    daemon: Daemon, identity: str, *words: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
) -> str:
    """Output of a command for the daemon, empty if it failed and `check` is off. It carries the lease's mark, so that
    it is found and ended if its conductor was killed. Raises CommandFailed."""
    here = lease_records.marked({lease_records.MARKER: identity})
    done = await run(here, [*daemon.client, *words], timeout_s=timeout_s, check=check)
    return done.stdout.decode(errors="replace").strip() if done.exit_code == 0 else ""


def processes(own: Own) -> dict[int, str]:
    """Living processes of our own daemon: process id to name."""
    wanted = f"{MARKER}={own.folder}".encode()
    alive: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                alive[int(entry)] = Path("/proc", entry, "comm").read_text(encoding="utf-8", errors="replace").strip()
    return {pid: name for pid, name in alive.items() if start_ticks(pid) is not None}


def lives(own: Own) -> bool:
    """Whether the daemon itself runs, whether it answers or not."""
    return "dockerd" in processes(own).values()


@contextlib.asynccontextmanager
async def locked(own: Own) -> AsyncIterator[None]:
    """Lock against starts and stops of the same daemon by other Steelyard processes. Raises SiteError."""
    async with fetch.locked(own.folder, SiteError, LOCK_TIMEOUT_S):
        yield


async def ensure(own: Own, client: str) -> Daemon:
    """The daemon of our own, started if needed; hold `locked`. Raises SiteError with the end of its log."""
    daemon = Daemon(client, own.address, own=True)
    dockerd = program("dockerd")
    if dockerd is None:
        raise LastingSiteError("program dockerd not found", "install it; on Debian: apt-get install docker.io")
    started: subprocess.Popen[bytes] | None = None
    if not lives(own):
        await stop(own)
        started = await asyncio.to_thread(_spawn, own, dockerd)
    deadline = time.monotonic() + START_TIMEOUT_S
    while problem := await asyncio.to_thread(answers, daemon):
        # A process that is still being loaded from a slow disk has no environment yet by which it would be found.
        alive = lives(own) if started is None else started.poll() is None
        if not alive or time.monotonic() > deadline:
            log = _tail(own.folder / "dockerd.log") or problem
            if started is not None:
                started.terminate()
            await stop(own)
            raise SiteError(f"dockerd did not start: {log}", "run `steelyard doctor` to see what this machine can do")
        await asyncio.sleep(POLL_S)
    return daemon


def _spawn(own: Own, dockerd: str) -> subprocess.Popen[bytes]:
    """Start the daemon in a separate session. Not by asyncio, which would end it with the event loop."""
    own.folder.mkdir(parents=True, exist_ok=True)
    own.data.mkdir(parents=True, exist_ok=True)
    (own.folder / "daemon.json").write_text("{}\n", encoding="utf-8")
    marks = {lease_records.MARKER, lease_records.RECORD_MARKER}
    environment = {name: value for name, value in os.environ.items() if name not in marks}
    environment |= {MARKER: str(own.folder), "PATH": search_path()}
    with (own.folder / "dockerd.log").open("ab") as log:
        return subprocess.Popen(
            own.argv(dockerd), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return " | ".join(line.strip() for line in lines[-LOG_TAIL_LINES:])


async def stop(own: Own) -> None:
    """End the daemon with everything that it started, and remove what it left mounted; hold `locked`. Idempotent.
    Raises SiteError."""
    if daemons := [pid for pid, name in processes(own).items() if name == "dockerd"]:
        for pid in daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        await _gone(own, STOP_GRACE_S)
    if not await _gone(own, KILL_TIMEOUT_S, kill=True):
        left = ", ".join(f"{name} {pid}" for pid, name in processes(own).items())
        raise SiteError(f"the Docker daemon of Steelyard did not end within {KILL_TIMEOUT_S:g} s: {left}")
    for place in mountinfo.below(mountinfo.here(), own.folder, own.data):
        await run(None, ["umount", "--lazy", str(place)], timeout_s=COMMAND_TIMEOUT_S, check=False)
    for name in ("exec", "docker.sock", "docker.pid", "daemon.json", "dockerd.log"):
        await asyncio.to_thread(_remove, own.folder / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


async def _gone(own: Own, within_s: float, *, kill: bool = False) -> bool:
    """Whether all processes of the daemon end in time; `kill` ends those that a look finds."""
    deadline = time.monotonic() + within_s
    while left := processes(own):
        if time.monotonic() > deadline:
            return False
        for pid in left if kill else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(POLL_S)
    return True


def users(except_for: str) -> list[str]:
    """Leases of any state folder that use our own daemon, also left over or without a record."""
    return [
        identity
        for identity, entry in lease_register.entries().items()
        if identity != except_for
        and (_uses_own(entry.seen) or (entry.site == "docker" and not lease_records.is_there(entry.seen)))
    ]


def _uses_own(record: Path) -> bool:
    """Whether a record is of a lease with our own daemon. Only the site and the daemon count: the rest of the
    record may not be readable here."""
    try:
        fields = json.loads(record.read_text(encoding="utf-8"))
        return bool(fields["site"] == "docker" and fields["daemon"] == "own")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def time_s(programs: Mapping[tuple[int, int], RunningProgram]) -> dict[str, float]:
    """Processor seconds of daemons, by name, in a census of processes. They belong to no node: they are what the
    machine also pays for containers. Pure."""
    seconds: dict[str, float] = {}
    for process in programs.values():
        if process.name in PROCESS_NAMES:
            seconds[process.name] = seconds.get(process.name, 0.0) + process.used_s
    return seconds
