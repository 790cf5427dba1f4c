"""Commands: prefixes, exit codes, time limits, and that nothing is left running."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from steelyard.model.errors import CommandFailed
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import end, full_argv, run, send, spawn

NODE = Node(
    "n1",
    "database",
    "127.0.0.1",
    ("env", "WHERE=in"),
    Path("/"),
    watch_prefix=("env", "WHERE=beside"),
    environment={"STEELYARD_LEASE": "0a1b2c3d"},
)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def gone_within(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_prefixes() -> None:
    assert full_argv(None, ["x"]) == ["x"]
    assert full_argv(NODE, ["x"]) == ["env", "WHERE=in", "x"]
    assert full_argv(NODE, ["x"], watch=True) == ["env", "WHERE=beside", "x"]
    assert full_argv(replace(NODE, watch_prefix=()), ["x"], watch=True) == ["env", "WHERE=in", "x"]


def test_run_gives_output_and_the_node_s_environment() -> None:
    done = asyncio.run(run(NODE, ["sh", "-c", "echo $WHERE $STEELYARD_LEASE; cat >&2"], timeout_s=10, stdin=b"said"))
    assert (done.exit_code, done.stdout, done.stderr) == (0, b"in 0a1b2c3d\n", b"said")


def test_run_fails_with_facts() -> None:
    with pytest.raises(CommandFailed) as caught:
        asyncio.run(run(NODE, ["sh", "-c", "echo broken >&2; exit 3"], timeout_s=10))
    assert (caught.value.node, caught.value.exit_code, caught.value.stderr_tail) == ("n1", 3, "broken\n")
    assert asyncio.run(run(NODE, ["false"], timeout_s=10, check=False)).exit_code == 1


def test_run_of_no_program() -> None:
    with pytest.raises(CommandFailed) as caught:
        asyncio.run(run(None, ["/nowhere/at/all"], timeout_s=10))
    assert caught.value.exit_code == 127


def test_run_over_its_limit_ends_the_whole_family(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    begun = time.monotonic()
    with pytest.raises(CommandFailed, match=r"did not end in time: limit 0\.3 s") as caught:
        asyncio.run(run(None, ["sh", "-c", script], timeout_s=0.3))
    assert time.monotonic() - begun < 3
    assert caught.value.exit_code is None
    assert gone_within(int((tmp_path / "pid").read_text()), 2)


def test_spawn_appends_to_files_and_end_is_idempotent(tmp_path: Path) -> None:
    async def both() -> int | None:
        for _ in range(2):
            process = await spawn(
                NODE, ["sh", "-c", "echo $WHERE; echo no >&2"], stdout=tmp_path / "o", stderr=tmp_path / "e"
            )
            await process.wait()
        await end(process)
        return process.returncode

    assert asyncio.run(both()) == 0
    assert (tmp_path / "o").read_text() == "in\nin\n"
    assert (tmp_path / "e").read_text() == "no\nno\n"


@pytest.mark.parametrize(("trap", "code"), [("", -signal.SIGTERM), ("trap '' TERM; ", -signal.SIGKILL)])
def test_end_asks_and_then_kills(trap: str, code: int) -> None:
    async def started() -> int | None:
        script = f"{trap}echo ready; while :; do sleep 0.05; done"
        process = await spawn(None, ["sh", "-c", script], stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        await end(process, grace_s=0.3)
        return process.returncode

    assert asyncio.run(started()) == code


def test_a_signal_to_a_process_that_has_just_ended_leaves_its_exit_code() -> None:
    def wait_for_its_end(pid: int) -> None:
        assert gone_within(pid, 10.0)

    async def code() -> int:
        process = await spawn(None, ["sh", "-c", "exit 3"])
        # The event loop cannot look meanwhile.
        wait_for_its_end(process.pid)
        send(process, signal.SIGTERM)
        return await process.wait()

    assert asyncio.run(code()) == 3


SECRET = {"PLANTED": 'hunt er"2'}
SAY = ["sh", "-c", 'printf "%s|" "$PLANTED"; cat']


def apart(**changes: Any) -> Node:
    """A node that does not get this process's environment, as over ssh."""
    prefix = ("env", "-i", f"PATH={os.environ['PATH']}")
    return replace(NODE, prefix=prefix, watch_prefix=(), inherits=False, agent=str(agent.find()), **changes)


def test_variables_are_in_the_environment_where_it_is_inherited() -> None:
    node = replace(NODE, environment={**NODE.environment, "OWN": "node"})
    done = asyncio.run(run(node, SAY, timeout_s=10, stdin=b"in", variables=SECRET | {"OWN": "variable"}))
    assert done.stdout == b'hunt er"2|in'
    assert full_argv(node, SAY) == [*NODE.prefix, *SAY]


@pytest.mark.agent
def test_variables_reach_a_node_that_inherits_nothing_but_no_command_line() -> None:
    done = asyncio.run(run(apart(), SAY, timeout_s=10, stdin=b"in", variables=SECRET))
    assert done.stdout == b'hunt er"2|in'
    argv = full_argv(apart(), SAY, with_variables=True)
    assert "with-variables" in argv
    assert not any("hunt" in word for word in argv)
    assert asyncio.run(run(apart(), SAY, timeout_s=10, stdin=b"in")).stdout == b"|in"


@pytest.mark.agent
@pytest.mark.parametrize("processes", ["same", "through"])
def test_a_spawned_command_is_told_variables_before_it_reads(processes: Literal["same", "through"]) -> None:
    async def body() -> bytes:
        pipe = asyncio.subprocess.PIPE
        process = await spawn(apart(processes=processes), SAY, stdin=pipe, stdout=pipe, variables=SECRET)
        stdout, _ = await asyncio.wait_for(process.communicate(b"words"), 10)
        return stdout

    assert asyncio.run(body()) == b'hunt er"2|words'


@pytest.mark.agent
def test_the_command_s_input_ends_where_none_was_asked_for() -> None:
    async def body() -> bytes:
        process = await spawn(apart(), SAY, stdout=asyncio.subprocess.PIPE, variables=SECRET)
        assert process.stdout is not None
        return await asyncio.wait_for(process.stdout.read(), 10)

    assert asyncio.run(body()) == b'hunt er"2|'
