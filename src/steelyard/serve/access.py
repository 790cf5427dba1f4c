"""Access to the server: a secret token in the address, then a cookie. Other users of this machine read nothing.

A loopback address is open to everybody who has an account on the machine. So the first request must have the token that
the command printed; the answer sets a cookie that holds it, and the address is shown without it from then on. The token
is kept, for its owner alone, so that pages that are open go on when the server is started again.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from steelyard.model.errors import SteelyardError

PARAMETER: Final = "token"
TOKEN_BYTES: Final = 24
OWNER_ONLY: Final = 0o600
OTHERS: Final = 0o077
TRIES: Final = 3
_FORM: Final = re.compile(r"[0-9a-f]{48}")


def kept_token(path: Path) -> str:
    """The token in a file that only its owner can read; a new one if there is none, or if others could read or write
    it. Raises SteelyardError if it cannot be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(TRIES):
            if (token := _read(path)) is not None:
                return token
            path.unlink(missing_ok=True)
            token = secrets.token_hex(TOKEN_BYTES)
            # Another server may be as far as this one: whoever links first has made the token.
            draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            write_private(draft, token)
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
    except OSError as error:
        raise SteelyardError(
            f"the token of the pages cannot be kept in {path}: {error.strerror}", "make room, or set STEELYARD_STATE"
        ) from error
    raise SteelyardError(f"the token of the pages cannot be kept in {path}", f"remove {path}")


def _read(path: Path) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, encoding="ascii", errors="replace") as file:
        about = os.fstat(file.fileno())
        text = file.read(2 * TOKEN_BYTES + 1)
    mine = about.st_uid == os.getuid() and not about.st_mode & OTHERS
    return text if mine and _FORM.fullmatch(text) else None


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read. Raises OSError, also if it is there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


class Access:
    """Who may read: whoever has the token."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
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

    def cookie(self) -> str:
        """The `Set-Cookie` header: for this server alone, out of reach of scripts and of other sites."""
        return f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", errors="replace"), self._token.encode("ascii"))
