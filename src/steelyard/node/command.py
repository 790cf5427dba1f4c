"""Execution of commands through a node's prefix: argv lists, deadlines, never a shell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed
from steelyard.node import agent
from steelyard.node.base import Node

STDERR_TAIL_CHARS = 2000
KILL_GRACE_S = 5.0
EXIT_POLL_S = 0.01
ARCHITECTURE_TIMEOUT_S = 30.0
CONNECTION_LOST = 255
"""Exit code of ssh when it has no connection to the machine."""
NO_COMMANDS = 126
"""Exit code of shells for a command that cannot be executed."""


@dataclass(frozen=True)
class Completed:
    """A command that has ended."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes


def full_argv(
    node: Node | None, argv: Sequence[str], *, watch: bool = False, tied: bool = False, with_variables: bool = False
) -> list[str]:
    """`argv` after the node's prefix, as the prefix wants it: quoted for a shell, its environment set on the node.

    `watch` selects the prefix whose use is not charged to the node. `tied` makes a command on a node whose processes
    are not this machine's end with its standard input: a signal reaches only the client on this machine.
    `with_variables`: the first line of its standard input holds environment variables."""
    if node is None:
        return list(argv)
    if not node.commands:
        raise CommandFailed(node.name, argv, NO_COMMANDS, "its machine is not lent: no commands can run there")
    prefix = (node.watch_prefix or node.prefix) if watch else node.prefix
    words = [agent.on(node), "with-variables", "--", *argv] if with_variables else list(argv)
    words = [agent.on(node), "tie", "--", *words] if tied and node.processes == "through" else words
    if not node.inherits and node.environment:
        words = ["env", *(f"{name}={value}" for name, value in sorted(node.environment.items())), *words]
    return [*prefix, shlex.join(words)] if node.words == "shell" else [*prefix, *words]


def _environment(node: Node | None, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command as this machine starts it; on a node that does not inherit it, of the prefix."""
    if node is not None and not node.inherits:
        return dict(os.environ)
    return {**os.environ, **variables, **(node.environment if node else {})}


def _first_line(node: Node | None, variables: Mapping[str, str]) -> bytes:
    """First input line with a command's variables for a node that does not inherit the environment; empty if there is
    none."""
    if node is None or node.inherits or not variables:
        return b""
    return json.dumps(dict(variables)).encode() + b"\n"


NO_VARIABLES: Mapping[str, str] = {}


async def run(
    node: Node | None,
    argv: Sequence[str],
    *,
    timeout_s: float,
    watch: bool = False,
    stdin: bytes = b"",
    check: bool = True,
    variables: Mapping[str, str] = NO_VARIABLES,
) -> Completed:
    """Run a command to its end. `node` None means this machine; `variables` are further environment variables, which
    are in no command line. Raises CommandFailed on time-out, and on a code other than 0 if `check`."""
    name = node.name if node else ""
    first_line = _first_line(node, variables)
    stdin = first_line + stdin
    try:
        process = await asyncio.create_subprocess_exec(
            *full_argv(node, argv, watch=watch, with_variables=bool(first_line)),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(node, variables),
            start_new_session=True,
        )
    except OSError as error:
        raise CommandFailed(name, argv, 127, str(error)) from error
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(stdin or None), timeout_s)
    except TimeoutError:
        await end(process)
        raise CommandFailed(name, argv, None, f"limit {timeout_s:g} s") from None
    except asyncio.CancelledError:
        await end(process)
        raise
    code = process.returncode if process.returncode is not None else -1
    if check and code != 0:
        lost = node is not None and node.words == "shell" and code == CONNECTION_LOST
        hint = (
            f"ssh has no connection to {name}: `steelyard doctor --site INVENTORY` says how to fix it" if lost else ""
        )
        raise CommandFailed(name, argv, code, stderr.decode(errors="replace")[-STDERR_TAIL_CHARS:], hint)
    return Completed(tuple(argv), code, stdout, stderr)


async def architecture(node: Node | None) -> str:
    """The output of `uname -m` on a node, or on this machine. Raises CommandFailed."""
    done = await run(node, ["uname", "-m"], timeout_s=ARCHITECTURE_TIMEOUT_S, watch=True)
    return done.stdout.decode().strip()


async def spawn(
    node: Node | None,
    argv: Sequence[str],
    *,
    stdout: Path | int | None = None,
    stderr: Path | None = None,
    stdin: int = asyncio.subprocess.DEVNULL,
    watch: bool = False,
    variables: Mapping[str, str] = NO_VARIABLES,
) -> asyncio.subprocess.Process:
    """Start a command and return at once; `variables` as for `run`. Output goes to files of this machine, or is
    discarded; `asyncio.subprocess.PIPE` for stdout or stdin gives a stream. The process has its own session, so neither
    ctrl-C at the terminal nor the conductor's death by a signal reaches it. From Python 3.12 on, asyncio kills it when
    the event loop that started it ends normally; a lease is released before that. Where the node's processes are not
    this machine's, what ends here is the client of the prefix, and the command ends with it."""
    tied = node is not None and node.processes == "through"
    first_line = _first_line(node, variables)
    ends_at_once = stdin == asyncio.subprocess.DEVNULL and not tied
    if (tied or first_line) and stdin == asyncio.subprocess.DEVNULL:
        stdin = asyncio.subprocess.PIPE
    with contextlib.ExitStack() as stack:
        out: int | object = asyncio.subprocess.DEVNULL
        if isinstance(stdout, Path):
            out = stack.enter_context(stdout.open("ab"))
        elif stdout is not None:
            out = stdout
        err = stack.enter_context(stderr.open("ab")) if stderr else asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *full_argv(node, argv, watch=watch, tied=tied, with_variables=bool(first_line)),
                stdin=stdin,
                stdout=out,  # type: ignore[arg-type]
                stderr=err,
                env=_environment(node, variables),
                start_new_session=True,
                limit=64 * 1024 * 1024,
            )
        except OSError as error:
            raise CommandFailed(node.name if node else "", argv, 127, str(error)) from error
    if first_line and process.stdin is not None:
        # Less than a pipe holds. A command that has ended already says so itself.
        process.stdin.write(first_line)
        if ends_at_once:
            process.stdin.close()
    return process


def send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to a process that `run` or `spawn` started, and to its children; do nothing if it has ended.

    Not `Process.send_signal`: it first checks whether the process has ended, and so takes its exit code away from the
    event loop, which then reports 255 (https://github.com/python/cpython/issues/127049)."""
    if process.returncode is None:
        # `run` and `spawn` give every process its own session, so its id is that of its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


async def end(process: asyncio.subprocess.Process, grace_s: float = KILL_GRACE_S) -> None:
    """Terminate a process that we started and its children, then kill them if they do not end. Idempotent.

    `Process.wait` also waits for the pipes to close, which a grandchild may hold open: here only the exit counts."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        send(process, number)
        if await _exits(process, grace_s):
            # The ends of its pipes are read in a later iteration of the loop, which must not be closed before.
            await asyncio.sleep(EXIT_POLL_S)
            return


async def _exits(process: asyncio.subprocess.Process, within_s: float) -> bool:
    for _ in range(math.ceil(within_s / EXIT_POLL_S)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(EXIT_POLL_S)
    return False
