"""A live link between network namespaces that a test makes itself, and measurements across it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.node import agent

LIMIT_S = 30.0
PORT = 5201
INTERFACE = "eth0"


def program() -> str:
    """Path of the agent."""
    return str(agent.find())


@dataclass(frozen=True)
class Place:
    """A port of the link: a namespace with an address and a hardware address."""

    name: str
    namespace: str
    address: str
    prefix: int
    mac: str
    wired: bool = False

    def entry(self) -> dict[str, Any]:
        """The port as the link's configuration has it."""
        return {
            "name": self.name,
            "namespace": f"/run/netns/{self.namespace}",
            "interface": INTERFACE,
            "address": f"{self.address}/{self.prefix}",
            "mac": self.mac,
            "wired": self.wired,
        }

    def inside(self, *argv: str) -> list[str]:
        """A command in this namespace."""
        return [program(), "enter", "--netns", f"/run/netns/{self.namespace}", "--", *argv]

    def links(self) -> list[str]:
        """Names of the interfaces in this namespace."""
        done = ip("-json", "-netns", self.namespace, "link", "show")
        return [link["ifname"] for link in json.loads(done)]


def ip(*arguments: str) -> str:
    """Output of `ip`."""
    argv = ["ip", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout


@contextmanager
def places(count: int, *, six: bool = False, wired: Sequence[int] = ()) -> Iterator[list[Place]]:
    """Namespaces, removed at the end."""
    with ExitStack() as stack:
        made = []
        for number in range(1, count + 1):
            namespace = f"sylink-{os.getpid()}-{number}"
            ip("netns", "add", namespace)
            stack.callback(ip, "netns", "delete", namespace)
            address, prefix = (f"fd00:113::{number}", 64) if six else (f"10.113.0.{number}", 16)
            made.append(
                Place(f"n{number}", namespace, address, prefix, f"02:00:00:00:00:{number:02x}", number in wired)
            )
        yield made


@dataclass
class Link:
    """A running link program."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    lines: list[dict[str, Any]] = field(default_factory=list)

    def end(self) -> dict[str, Any]:
        """Its counters, after its standard input was closed."""
        output, _ = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0
        self.lines += [json.loads(line) for line in output.splitlines()]
        return self.lines[-1]


def write_config(folder: Path, medium: dict[str, Any], ports: Sequence[Place], **settings: Any) -> Path:
    """The configuration of a link as a file."""
    path = folder / "link.json"
    path.write_text(json.dumps({"medium": medium, "ports": [port.entry() for port in ports], **settings}))
    return path


@contextmanager
def link(config: Path, *options: str) -> Iterator[Link]:
    """The link program, ready; killed at the end if it still runs."""
    argv = [program(), "link", "--config", str(config), *options]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the link program ended with {process.wait()}"
        yield Link(process, json.loads(line))
    finally:
        process.kill()
        with suppress(ValueError):
            process.communicate()


@contextmanager
def _server(place: Place) -> Iterator[None]:
    argv = place.inside(program(), "linktest", "serve", "--address", place.address, "--port", str(PORT))
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["listening"]
        yield
    finally:
        process.kill()
        process.communicate()


def measure(source: Place, target: Place, *options: str) -> dict[str, Any]:
    """What `linktest` says of the path between two places."""
    with _server(target):
        argv = [program(), "linktest", "measure", "--address", target.address, "--port", str(PORT), *options]
        done = subprocess.run(source.inside(*argv), check=True, capture_output=True, text=True, timeout=LIMIT_S)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def balanced(counters: dict[str, Any]) -> bool:
    """Whether every receiver of every frame is accounted for."""
    ends = ("delivered", "dropped", "lost", "under_way")
    return bool(counters["receivers"] == sum(counters[name] for name in ends))
