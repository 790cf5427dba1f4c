"""Access to the server: a secret token in the address, then a cookie. Other users of this machine read nothing.

A loopback address is open to everybody who has an account on the machine. So the first request must have the token that
the command printed; the answer sets a cookie that holds it, and the address is shown without it afterwards.

When the server has ended, another user may bind its port, and a page that is still open would ask him for news. So a
page asks without the cookie: it proves each request with a key that only pages of this process have, and believes only
answers that are proven with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import os
import secrets
import struct
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

PARAMETER: Final = "token"
TOKEN_BYTES: Final = 24
OWNER_ONLY: Final = 0o600
NONCE_HEADER: Final = "X-Steelyard-Nonce"
PROOF_HEADER: Final = "X-Steelyard-Proof"
LONGEST_NONCE: Final = 64
SOCKETS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Sockets of this machine with their addresses and users, see proc_net_tcp.rst of the kernel's documentation."""
READINGS: Final = 2
"""Reads of each table: a long one is read in pieces, and a line may move meanwhile."""
ROOT: Final = 0


def new_token() -> str:
    """The token of one server process: worthless when that has ended, so that a process that takes its port gains
    nothing by a cookie that a browser sends there."""
    return secrets.token_hex(TOKEN_BYTES)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read. Raises OSError, also if it is there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def is_of_another_user(peer: tuple[Any, ...], own: tuple[Any, ...], sockets: Sequence[Path] = SOCKETS) -> bool:
    """Whether the other end of a connection within this machine may be a socket of another user, neither root nor ours:
    one that may have our cookie, since browsers send it to every port of an address. `peer` and `own`: the addresses
    of both ends, as Python gives them. True for one that the kernel does not list; False if it has no list."""
    ends = {(local, remote) for local in _as_listed(peer) for remote in _as_listed(own)}
    listed = False
    for path in [*sockets] * READINGS:
        with contextlib.suppress(OSError):
            lines = path.read_text(encoding="ascii").splitlines()[1:]
            listed = True
            for line in lines:
                _, local, remote, _, _, _, _, uid, *_ = line.split()
                if (local, remote) in ends:
                    return int(uid) not in (os.getuid(), ROOT)
    return listed


def _as_listed(end: tuple[Any, ...]) -> tuple[str, ...]:
    """An address and port as the kernel lists them, words of 32 bits in the order of the processor; one of IPv4 also as
    a socket of IPv6 has it."""
    address = ipaddress.ip_address(end[0].partition("%")[0])
    words = [address.packed]
    if address.version == 4:
        words.append(ipaddress.IPv6Address(f"::ffff:{address}").packed)
    return tuple(f"{_hex(packed)}:{end[1]:04X}" for packed in words)


def _hex(packed: bytes) -> str:
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", packed))


def page_key(token: str) -> str:
    """The key that a process puts into its pages. The token does not follow from it."""
    return _mac(token, b"page")


def _mac(key: str, *parts: bytes) -> str:
    return hmac.new(key.encode("ascii"), b"\n".join(parts), hashlib.sha256).hexdigest()


class Access:
    """Permission to read: the token."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._page_key = page_key(token)
        self._cookie = f"steelyard-{port}"
        """Browsers keep one set of cookies for all ports of an address."""

    def address(self, url: str) -> str:
        """An address with the token."""
        return f"{url}?{urlencode({PARAMETER: self._token})}"

    def asked_with_token(self, target: str) -> str | None:
        """The same request target without the token, if it has the right one; else None."""
        split = urlsplit(target)
        query = parse_qsl(split.query, keep_blank_values=True, errors="surrogateescape")
        if not any(name == PARAMETER and self._is_token(value) for name, value in query):
            return None
        rest = urlencode([pair for pair in query if pair[0] != PARAMETER], errors="surrogateescape")
        path = "/" + split.path.lstrip("/")
        return f"{path}?{rest}" if rest else path

    def has_cookie(self, header: str) -> bool:
        """Whether a `Cookie` header has the token."""
        try:
            morsel = SimpleCookie(header).get(self._cookie)
        except CookieError:
            return False
        return morsel is not None and self._is_token(morsel.value)

    def is_proven(self, target: str, nonce: str, proof: str) -> bool:
        """Whether a request for news is one of a page of this process."""
        expected = _mac(self._page_key, b"ask", nonce.encode(errors="replace"), target.encode(errors="replace"))
        return 0 < len(nonce) <= LONGEST_NONCE and hmac.compare_digest(
            expected.encode(), proof.encode(errors="replace")
        )

    def proof(self, nonce: str, body: bytes) -> str:
        """Proof for a page that an answer to its request is of this process."""
        return _mac(self._page_key, b"answer", nonce.encode(errors="replace"), body)

    def cookie(self) -> str:
        """The `Set-Cookie` header: for this server alone, out of reach of scripts and of other sites."""
        return f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", errors="replace"), self._token.encode("ascii"))
