"""HTTP server: plain `http.server` behind request checks, for this machine alone.

Whatever page the reader's browser also has open can send requests to a server on this machine. So everything that
is not a plain request of our own pages is refused before it is looked at: other methods, bodies, other names in `Host`
(a name that an attacker points at 127.0.0.1 stays in that header), requests that the browser marks as of another site,
and whatever comes without the token (`access`).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import html
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from steelyard.model.errors import SteelyardError, StudyError
from steelyard.serve.access import NONCE_HEADER, PROOF_HEADER, Access, is_of_another_user
from steelyard.serve.routes import BARE_POLICY, HTML, JSON, OWN_POLICY, Answer

LOOPBACK: Final = ("127.0.0.1", "::1")
"""The only addresses that are served."""
IDLE_S: Final = 20.0
"""A connection that says nothing, or takes nothing, for so long is closed."""
REQUEST_S: Final = 30.0
"""From the end of one answer (or the beginning of the connection) to the end of the next request: who sends a byte now
and then is not waited for."""
ANSWER_S: Final = 300.0
"""One answer, to its last byte: a report of some MB through SSH on a slow line."""
HTTP_PORT: Final = 80
PIECE_BYTES: Final = 64 * 1024
CONNECTIONS: Final = 64
"""At the same time; more are refused."""
REFUSALS: Final = 16
"""Connections that are refused at the same time; beyond that they are closed."""
REFUSAL_S: Final = 1.0
BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 2\r\n"
    b"Connection: close\r\nContent-Length: 64\r\n\r\n"
    b"Too many connections are open. Close some pages, and try again.\n"
)
BACKLOG: Final = 32

Respond = Callable[[str], Answer]
"""From a request target to its answer."""


NO_TOKEN: Final = (
    "This page is for the user who started `steelyard serve`.\n\n"
    "Open the address that it printed, with its ?token=..., once in this browser.\n"
    "After that, addresses without the token work too."
)


class Refused(Exception):
    """A request that is not looked at."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class PageServer(ThreadingHTTPServer):
    """Answers on one loopback address, to clients with the token, until it is closed. Raises StudyError for any other
    address, SteelyardError if the port is in use or not allowed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = BACKLOG
    request_s, answer_s = REQUEST_S, ANSWER_S

    def __init__(self, address: str, port: int, token: str, respond: Respond, complain: Callable[[str], None]) -> None:
        if address not in LOOPBACK:
            raise StudyError(
                f"--address {address}: pages are served on this machine only",
                f"{' or '.join(LOOPBACK)}; from elsewhere: ssh -L {port or 8765}:127.0.0.1:{port or 8765} THIS-MACHINE",
                key="--address",
                read=address,
                allowed=LOOPBACK,
            )
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.respond = respond
        self.complain = complain
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._refusals = threading.BoundedSemaphore(REFUSALS)
        self._ends: dict[socket.socket, float] = {}
        self._guard = threading.Lock()
        try:
            super().__init__((address, port), Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            what = "is in use" if in_use else f"cannot be opened: {reason}"
            raise SteelyardError(
                f"port {port} of {address} {what}",
                "name another with --port; --port 0 takes any that is free",
            ) from error
        self.names = allowed_names(self.port)
        self.access = Access(token, self.port)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Its address, without the token."""
        address = str(self.server_address[0])
        return f"http://[{address}]:{self.port}" if ":" in address else f"http://{address}:{self.port}"

    def server_bind(self) -> None:
        """Bind, and ask no name server what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.port

    def process_request(self, request: Any, client_address: Any) -> None:
        """In its own thread, if there is a place; otherwise it is refused."""
        if not self._places.acquire(blocking=False):
            if self._refusals.acquire(blocking=False):
                threading.Thread(target=self._refuse, args=(request,), daemon=True).start()
            else:
                self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def _refuse(self, request: Any) -> None:
        """Answer 503, once the request is there: what is unread when a connection is closed takes the answer along."""
        try:
            with contextlib.suppress(OSError):
                request.settimeout(REFUSAL_S)
                with contextlib.suppress(TimeoutError):
                    request.recv(PIECE_BYTES)
                request.sendall(BUSY)
        finally:
            self._refusals.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def limit(self, connection: socket.socket, seconds: float | None) -> None:
        """Time limit of a connection's current activity; None: it has ended."""
        with self._guard:
            if seconds is None:
                self._ends.pop(connection, None)
            else:
                self._ends[connection] = time.monotonic() + seconds

    def service_actions(self) -> None:
        """Between requests, a few times per second: end what takes too long."""
        now_s = time.monotonic()
        with self._guard:
            for connection in [one for one, end_s in self._ends.items() if end_s < now_s]:
                del self._ends[connection]
                # Its thread, which waits on it, wakes up and puts it away.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is not news; anything else is a fault of ours."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.complain(f"{type(error).__name__}: {error}")


def allowed_names(port: int) -> frozenset[str]:
    """Accepted values of `Host`."""
    names = ("127.0.0.1", "[::1]", "localhost")
    # Browsers leave out the port that is everybody's.
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == HTTP_PORT else frozenset())


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server_version = "steelyard"
    sys_version = ""

    def handle_one_request(self) -> None:
        """Wait for a request, and answer it."""
        self.server.limit(self.connection, self.server.request_s)
        super().handle_one_request()

    def finish(self) -> None:
        """The connection is done with."""
        self.server.limit(self.connection, None)
        super().finish()

    def do_GET(self) -> None:
        """Answer with a body."""
        self._respond(body=True)

    def do_HEAD(self) -> None:
        """Answer without."""
        self._respond(body=False)

    def do_other(self) -> None:
        """Refuse: nothing here can be changed."""
        self.close_connection = True
        text = "Only GET and HEAD: nothing here can be changed."
        self._send(_refusal(Refused(HTTPStatus.METHOD_NOT_ALLOWED, text)), body=True)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = do_other

    def _respond(self, *, body: bool) -> None:
        self.server.limit(self.connection, self.server.answer_s)
        try:
            self._check()
            answer = self._welcome() or self._known()
        except Refused as refused:
            self.close_connection = True
            answer = _refusal(refused, data=self.path.startswith("/api/"))
        except Exception as error:  # the last place that can answer; what it was is said where the server was started
            self.server.complain(f"{self.path[:200]!r}: {type(error).__name__}: {error}")
            answer = _refusal(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "Unexpected error; see the terminal."))
        self._send(self._proving(answer), body=body)

    def _asks_with_proof(self) -> bool:
        """Whether it is a page of this process that asks for news; it does so without the cookie."""
        nonce, proof = self.headers.get(NONCE_HEADER, ""), self.headers.get(PROOF_HEADER, "")
        return self.path.startswith("/api/") and self.server.access.is_proven(self.path, nonce, proof)

    def _proving(self, answer: Answer) -> Answer:
        """The answer with its proof, if a page of this process asks."""
        if not self._asks_with_proof():
            return answer
        proof = self.server.access.proof(self.headers[NONCE_HEADER], answer.body)
        return replace(answer, headers={**answer.headers, PROOF_HEADER: proof})

    @functools.cached_property
    def _is_of_another_user(self) -> bool:
        """Of the connection, so asked once."""
        return is_of_another_user(self.client_address, self.connection.getsockname())

    def _check(self) -> None:
        """Raises Refused for what no page of ours sends, and for other users."""
        if self._is_of_another_user:
            raise Refused(HTTPStatus.FORBIDDEN, NO_TOKEN)
        names = self.headers.get_all("Host") or []
        if len(names) != 1 or names[0].strip().lower() not in self.server.names:
            text = f"Ask for {self.server.url}: other names of this machine are refused."
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, text)
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0").strip() != "0":
            raise Refused(HTTPStatus.BAD_REQUEST, "A request for a page must have no body.")
        if not self.path.startswith("/"):
            raise Refused(HTTPStatus.BAD_REQUEST, "That is not a path.")

    def _welcome(self) -> Answer | None:
        """A request that has the token in its address: the cookie, and the same address without the token."""
        target = self.server.access.asked_with_token(self.path)
        if target is None:
            return None
        cookie = {"Set-Cookie": self.server.access.cookie()}
        if self._is_own():
            return Answer(HTTPStatus.SEE_OTHER, HTML, b"", headers={**cookie, "Location": target})
        # The browser was sent here by a file or a link. It sends the cookie with what one of our own pages asks for,
        # and not with what it is told to ask for instead.
        page = (
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(target)}"><title>Steelyard</title>'
        )
        return Answer(HTTPStatus.OK, HTML, page.encode("utf-8", errors="replace"), OWN_POLICY, cookie)

    def _is_own(self) -> bool:
        """Whether the request is typed, from a program, or from one of our own pages. A page of another port of this
        machine is of the same site, and as foreign."""
        site = self.headers.get("Sec-Fetch-Site", "none").strip().lower()
        origin = self.headers.get("Origin", self.headers["Host"]).strip().lower().removeprefix("http://")
        return site in ("none", "same-origin") and origin in self.server.names

    def _known(self) -> Answer:
        """The answer to a client that has the cookie, or asks for news from a page of this process. Raises Refused for
        all others."""
        if not self._is_own():
            raise Refused(HTTPStatus.FORBIDDEN, "Another site sent this. Type the address instead.")
        if not self.server.access.has_cookie(self.headers.get("Cookie", "")) and not self._asks_with_proof():
            raise Refused(HTTPStatus.FORBIDDEN, NO_TOKEN)
        return self.server.respond(self.path)

    def _send(self, answer: Answer, *, body: bool) -> None:
        self.send_response(answer.status)
        headers = {
            "Content-Type": answer.type,
            "Content-Length": str(len(answer.body)),
            "Content-Security-Policy": answer.policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            **answer.headers,
        }
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            # In pieces: the limit of idleness is one of each piece, not of the whole on a slow line.
            for first in range(0, len(answer.body), PIECE_BYTES):
                self.wfile.write(answer.body[first : first + PIECE_BYTES])

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors raised by `http.server`; the request is not echoed."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(_refusal(Refused(status, f"{status.phrase}.")), body=getattr(self, "command", None) != "HEAD")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is for what matters."""


def _refusal(refused: Refused, *, data: bool = False) -> Answer:
    """A refusal as plain text, or as `data` for a page that asks for news."""
    allowed = {"Allow": "GET, HEAD"} if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
    if data:
        return Answer(refused.status, JSON, json.dumps({"message": refused.text}).encode(), BARE_POLICY, allowed)
    body = f"{refused.text}\n".encode()
    return Answer(refused.status, "text/plain; charset=utf-8", body, BARE_POLICY, allowed)
