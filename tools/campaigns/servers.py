"""The campaign of servers: the agent's `load` against 24 servers that are none, or bad ones."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tools.campaigns.agent_call import EXAMPLES, call_agent, example
from tools.campaigns.campaign import Case, Outcome, no_world

LIMIT_S: Final = 60.0
CALL_LIMIT_S: Final = 45.0
"""Handshakes have time limits of their own; a load ends after 10 s of them."""
Behaviour = Callable[[socket.socket], None]
ERROR, READY, AUTHENTICATE, SUPPORTED, RESULT = 0x00, 0x02, 0x03, 0x06, 0x08


def frame(
    opcode: int, body: bytes = b"", *, version: int = 0x85, stream: int = 0, flags: int = 0, length: int = -1
) -> bytes:
    """An answer of the native protocol, also one that lies about its length."""
    return struct.pack(">BBhBI", version, flags, stream, opcode, len(body) if length < 0 else length) + body


def _sends(*answers: bytes, wait_s: float = 0.0) -> Behaviour:
    """Answers each request with the next of these, and then closes."""

    def behave(client: socket.socket) -> None:
        for answer in answers:
            client.recv(65536)
            time.sleep(wait_s)
            client.sendall(answer)
        client.recv(65536)

    return behave


def _always(answer: bytes) -> Behaviour:
    def behave(client: socket.socket) -> None:
        while client.recv(65536):
            client.sendall(answer)

    return behave


def _silent(client: socket.socket) -> None:
    while client.recv(65536):
        pass


def _closes(client: socket.socket) -> None:
    del client


def _resets(client: socket.socket) -> None:
    client.recv(10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _drips(client: socket.socket) -> None:
    client.recv(65536)
    for byte in frame(SUPPORTED, b"\0" * 100) * 100:
        client.sendall(bytes([byte]))
        time.sleep(0.2)


def _floods(client: socket.socket) -> None:
    client.recv(65536)
    for _ in range(2000):
        client.sendall(b"\0" * 65536)


def _echoes(client: socket.socket) -> None:
    while content := client.recv(65536):
        client.sendall(content)


STRINGS: Final = b"\x00\x01\x00\x0bCQL_VERSION\x00\x01\x00\x053.4.5"
GOOD: Final = frame(SUPPORTED, STRINGS)
SERVERS: Final[dict[str, Behaviour]] = {
    "closes at once": _closes,
    "closes after a request": _sends(b""),
    "says nothing": _silent,
    "resets": _resets,
    "drips": _drips,
    "sends zeros without end": _floods,
    "echoes": _echoes,
    "sends random bytes": _always(random.Random(0).randbytes(4096)),
    "speaks HTTP": _always(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "speaks TLS": _always(b"\x15\x03\x01\x00\x02\x02\x28"),
    "announces 2 GB": _sends(frame(SUPPORTED, length=2**31 - 1)),
    "announces 4 GB": _sends(frame(SUPPORTED, length=2**32 - 1)),
    "half a header": _sends(GOOD[:5]),
    "half a body": _sends(GOOD[:-3]),
    "another version": _always(frame(ERROR, b"\x00\x00\x00\x0a\x00\x03old", version=0x81)),
    "an unknown opcode": _always(frame(0x7F, b"x")),
    "another stream": _always(frame(SUPPORTED, STRINGS, stream=999)),
    "a negative stream": _always(frame(SUPPORTED, STRINGS, stream=-1)),
    "options that are none": _sends(frame(SUPPORTED, b"\xff\xff\xff")),
    "an error without end": _always(frame(ERROR, b"\x00\x00\x00\x00\xff\xffx")),
    "an overloaded server": _always(frame(ERROR, b"\x00\x00\x10\x01\x00\x04busy")),
    "asks for a password": _sends(GOOD, frame(AUTHENTICATE, b"\x00\x01x"), frame(AUTHENTICATE, b"\x00\x01x")),
    "compressed nonsense": _sends(GOOD, frame(READY, b"\xff\xff\xff\xff\x00", flags=0x01)),
    "ready, then rows that are none": _sends(
        GOOD, frame(READY), *[frame(RESULT, b"\x00\x00\x00\x02\xff\xff\xff\xff" + b"\xff" * 20)] * 3
    ),
}


@contextmanager
def serving(behave: Behaviour) -> Iterator[str]:
    """A server on a port of its own; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(client: socket.socket) -> None:
            with contextlib.suppress(OSError), client:
                client.settimeout(CALL_LIMIT_S)
                behave(client)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=answer, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


class Servers:
    """The agent's `load` against bad servers."""

    name = "servers"
    about = f"{len(SERVERS)} bad servers against the agent's `load`"
    limit_s = LIMIT_S

    def cases(self, seed: int) -> Sequence[Case]:
        """Each server once."""
        del seed
        return [Case(name, "connecting") for name in SERVERS]

    def world(self, folder: Path) -> AbstractContextManager[None]:
        """Nothing is shared."""
        return no_world(folder)

    def run(self, world: None, case: Case, folder: Path) -> Outcome:
        """A load against one server ends with 3, or with 1 if the server refuses it, and says why."""
        with serving(SERVERS[case.name]) as contact:
            load = call_agent(example(EXAMPLES[0], contact), folder, "load", limit_s=CALL_LIMIT_S)
        return Outcome(load.findings((1, 3)), {"calls": [load.facts()]})


CAMPAIGN: Final = Servers()
