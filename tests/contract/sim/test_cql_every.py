"""`steelyard-agent cql --every` against the simulated cluster: one line per interval, in turn, a lost connection."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from steelyard.node import agent

pytestmark = pytest.mark.agent

ADDRESS = "127.94.7.1"
VERSION = "SELECT release_version FROM system.local"
REFUSED = "SELECT nothing FROM there.is_none"
MOST_LINES = 200


@contextmanager
def simulated(port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A simulated node, and its contact."""
    argv = [str(agent.find()), "sim", "--listen", f"{ADDRESS}:{port}"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.wait()


@contextmanager
def asking(contact: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command, asking ten times per second."""
    argv = [str(agent.find()), "cql", "--contact", contact, "--timeout-s", "2", "--every", "0.1", *words]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for _, line in zip(range(MOST_LINES), process.stdout, strict=False):
        yield json.loads(line)


def test_statements_are_asked_again_and_some_in_turn() -> None:
    with simulated() as (_, contact), asking(contact, REFUSED, "--in-turn", VERSION, "--in-turn", REFUSED) as process:
        every = lines(process)
        assert next(every)["connected"] is True
        first, second, third = (next(every)["answers"] for _ in range(3))
        assert [answer is None for answer in first] == [True, False, True]
        assert first[1]["columns"] == ["release_version"]
        assert second == [None, None, None], "one of the statements in turn, which is refused"
        assert third == first
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read().count(REFUSED) == 2, "each refusal is told once"


def test_a_connection_that_is_lost_is_opened_again() -> None:
    with simulated() as (server, contact), asking(contact, VERSION) as process:
        every = lines(process)
        assert next(every)["connected"] is True
        assert next(every)["answers"][0]["rows"]
        server.kill()
        server.wait()
        assert any("lost" in line for line in every)
        with simulated(int(contact.rpartition(":")[2])):
            assert any("answers" in line for line in every)
