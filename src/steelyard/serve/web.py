"""The server: plain `http.server` behind checks, for this machine alone.

Whatever page the reader's browser has open besides can send requests to a server on this machine. So everything that
is not a plain request of our own pages is refused before it is looked at: other methods, bodies, other names in `Host`
(a name that an attacker points at 127.0.0.1 stays in that header), requests that the browser marks as of another site.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from steelyard.model.errors import SteelyardError, StudyError
from steelyard.serve.routes import BARE_POLICY, Answer

LOOPBACK: Final = ("127.0.0.1", "::1")
"""The only addresses that are served."""
IDLE_S: Final = 20.0
"""A connection that says nothing for so long is closed."""
CONNECTIONS: Final = 64
"""At the same time; more are refused."""
BACKLOG: Final = 32

Respond = Callable[[str], Answer]
"""From a request target to its answer."""


class Refused(Exception):
    """A request that is not looked at."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Server(ThreadingHTTPServer):
    """Answers on one loopback address until it is closed. Raises StudyError for any other address, SteelyardError if
    the port cannot be had."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = BACKLOG

    def __init__(self, address: str, port: int, respond: Respond, complain: Callable[[str], None]) -> None:
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
        try:
            super().__init__((address, port), Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise SteelyardError(
                f"port {port} of {address} cannot be had: {reason}",
                "name another with --port; --port 0 takes any that is free",
            ) from error
        self.names = allowed_names(self.port)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where it is."""
        address = str(self.server_address[0])
        return f"http://[{address}]:{self.port}" if ":" in address else f"http://{address}:{self.port}"

    def server_bind(self) -> None:
        """Bind, and ask no name server what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.port

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, if there is a place."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is no news."""


def allowed_names(port: int) -> frozenset[str]:
    """What `Host` may say."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "[::1]", "localhost"))


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server_version = "steelyard"
    sys_version = ""

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
        try:
            self._check()
            answer = self.server.respond(self.path)
        except Refused as refused:
            self.close_connection = True
            answer = _refusal(refused)
        except Exception as error:  # the last place that can answer; what it was is said where the server was started
            self.server.complain(f"{self.path[:200]!r}: {type(error).__name__}: {error}")
            answer = _refusal(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "This was not foreseen; see the terminal."))
        self._send(answer, body=body)

    def _check(self) -> None:
        """Raises Refused for what no page of ours sends."""
        names = self.headers.get_all("Host") or []
        if len(names) != 1 or names[0].strip().lower() not in self.server.names:
            text = f"Ask for {self.server.url}: other names of this machine are refused."
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, text)
        if self.headers.get("Sec-Fetch-Site", "").strip().lower() == "cross-site":
            raise Refused(HTTPStatus.FORBIDDEN, "Another site sent this. Type the address instead.")
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0").strip() != "0":
            raise Refused(HTTPStatus.BAD_REQUEST, "A request for a page has no body.")
        if not self.path.startswith("/"):
            raise Refused(HTTPStatus.BAD_REQUEST, "That is no path.")

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
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself, without saying back what was sent."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(_refusal(Refused(status, f"{status.phrase}.")), body=getattr(self, "command", None) != "HEAD")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is for what matters."""


def _refusal(refused: Refused) -> Answer:
    allowed = {"Allow": "GET, HEAD"} if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
    body = f"{refused.text}\n".encode()
    return Answer(refused.status, "text/plain; charset=utf-8", body, BARE_POLICY, allowed)
