"""The campaign of servers: the agent's `load` against servers that are none, or bad ones, over every protocol."""

from __future__ import annotations

import contextlib
import json
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
from tools.campaigns.campaign import Case, Finding, Outcome, no_world

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
OF_ANY: Final[dict[str, Behaviour]] = {
    "closes at once": _closes,
    "closes after a request": _sends(b""),
    "says nothing": _silent,
    "resets": _resets,
    "drips": _drips,
    "sends zeros without end": _floods,
    "echoes": _echoes,
    "sends random bytes": _always(random.Random(0).randbytes(4096)),
}
OF_CQL: Final[dict[str, Behaviour]] = {
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
OF_HTTP: Final[dict[str, Behaviour]] = {
    "speaks CQL": _always(GOOD),
    "speaks RESP": _always(b"+OK\r\n"),
    "half a head": _sends(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "half a body": _sends(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"),
    "half a body, then nothing": _always(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc"),
    "a head without end": _always(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000),
    "announces 4 GB": _always(b"HTTP/1.1 200 OK\r\nContent-Length: 4294967296\r\n\r\n"),
    "announces more than 64 bits": _always(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n"),
    "a length that is none": _always(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    "chunks that are none": _always(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
    "two answers to a request": _always(2 * b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "goes on without end": _always(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "an empty body": _always(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "JSON that is none": _always(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"a":'),
    "JSON too deep": _always(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000),
    "an overloaded server": _always(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"),
}
OF_RESP: Final[dict[str, Behaviour]] = {
    "speaks CQL": _always(GOOD),
    "speaks HTTP": _always(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "half a line": _sends(b"+O"),
    "half a text": _sends(b"$1000\r\nabc"),
    "half a text, then nothing": _always(b"$1000000\r\nabc"),
    "a line without end": _always(b"+" + b"x" * 1_000_000),
    "announces 4 GB": _always(b"$4294967296\r\n"),
    "announces 4 billion parts": _always(b"*4294967296\r\n"),
    "a length that is none": _always(b"$-7\r\n"),
    "parts too deep": _always(b"*1\r\n" * 100_000),
    "two answers to a request": _always(b"+OK\r\n+OK\r\n"),
    "asks for a password": _always(b"-NOAUTH Authentication required.\r\n"),
    "an error without end": _always(b"-ERR " + b"x" * 1_000_000),
    "an overloaded server": _always(b"-TRYAGAIN busy\r\n"),
    "is moved in a circle": _always(b"-MOVED 1 127.0.0.1:1\r\n"),
    "slots that are none": _always(b"*1\r\n*3\r\n:-1\r\n:99999\r\n*2\r\n$0\r\n\r\n:0\r\n"),
}


def message(kind: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    """A message of PostgreSQL, also one that lies about its length."""
    return kind + struct.pack(">I", len(body) + 4 if length is None else length) + body


LET_IN: Final = message(b"R", bytes(4)) + message(b"S", b"in_hot_standby\0off\0") + message(b"Z", b"I")
OF_POSTGRESQL: Final[dict[str, Behaviour]] = {
    "speaks CQL": _always(GOOD),
    "speaks HTTP": _always(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "half a head": _sends(b"R\0\0"),
    "half a message": _sends(message(b"R", bytes(4))[:-1]),
    "half a message, then nothing": _always(message(b"R", b"abc", 1_000_000)),
    "announces 4 GB": _always(message(b"R", length=2**32 - 1)),
    "a length that is none": _always(message(b"R", length=3)),
    "asks for a password in clear text": _always(message(b"R", b"\0\0\0\3")),
    "asks for a password in MD5": _always(message(b"R", b"\0\0\0\5salt")),
    "asks for a proof of another kind": _always(message(b"R", b"\0\0\0\nGSS\0\0")),
    "a challenge that is none": _sends(message(b"R", b"\0\0\0\nSCRAM-SHA-256\0\0"), message(b"R", b"\0\0\0\013r=x")),
    "an error without end": _always(message(b"E", b"M" + b"x" * 1_000_000)),
    "an overloaded server": _always(message(b"E", b"SFATAL\0C53300\0Mtoo many connections\0\0")),
    "notices without end": _always(message(b"N", b"Mhello\0\0") * 1000),
    "lets in, then nothing": _sends(LET_IN, b"", b""),
    "lets in, then rows that are none": _sends(LET_IN, *[message(b"D", b"\xff\xff" + b"\xff" * 20)] * 3),
}
FURTHER: Final[dict[str, dict[str, Behaviour]]] = {
    "http": OF_HTTP,
    "etcd": OF_HTTP,
    "resp": OF_RESP,
    "postgresql": OF_POSTGRESQL,
}
"""Protocol to its servers, after those of any; CQL's have no prefix in the names of their cases."""
SERVERS: Final[dict[str, Behaviour]] = {
    **OF_ANY,
    **OF_CQL,
    **{
        f"{protocol}: {name}": behave for protocol, own in FURTHER.items() for name, behave in {**OF_ANY, **own}.items()
    },
}
OPERATIONS: Final = 20
"""Of a load over protocols without a handshake, where each may take its whole time-out."""


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
        return [Case(name, _protocol(name) or "connecting") for name in SERVERS]

    def world(self, folder: Path) -> AbstractContextManager[None]:
        """Nothing is shared."""
        return no_world(folder)

    def run(self, world: None, case: Case, folder: Path) -> Outcome:
        """A load against one server ends with 3, or with 1 if the server refuses it, and says why; over protocols
        without a handshake also with 0, if each of its operations is an error."""
        protocol = _protocol(case.name)
        with serving(SERVERS[case.name]) as contact:
            order = example(f"{protocol}-order.example.json" if protocol else EXAMPLES[0], contact)
            if protocol:
                order["stop"] = {"operations": OPERATIONS}
                order["work"]["validate_fraction"] = 1.0
            load = call_agent(order, folder, "load", limit_s=CALL_LIMIT_S)
        findings = load.findings((0, 1, 3) if protocol else (1, 3))
        done = [record for line in load.out.splitlines() if (record := json.loads(line))["record"] == "done"]
        if load.code == 0 and [(end["operations"], end["errors"]) for end in done] != [(0, OPERATIONS)]:
            findings.append(Finding("silently-wrong", f"not {OPERATIONS} errors: {done}"))
        return Outcome(findings, {"calls": [load.facts()]})


def _protocol(name: str) -> str:
    """The protocol in a case's name; none for CQL."""
    protocol = name.partition(": ")[0]
    return protocol if protocol in FURTHER else ""


CAMPAIGN: Final = Servers()
