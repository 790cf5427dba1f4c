"""EC2 for tests: moto behind HTTP, so that every process sees the same account, with instances that are machines of a
shelf. They have the addresses of their machines, run their user data when they boot, and end with them.

What moto lacks is here: a token that launches nothing twice, boots, an end from within, calls that are throttled or
whose caller dies.
"""

from __future__ import annotations

import base64
import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests
from moto import mock_aws
from moto.ec2.models import ec2_backends

from tests.contract.shelf import Machine, Shelf

ACCOUNT, REGION, AMI = "123456789012", "eu-north-1", "ami-12c6146b"
FIRST_BOOT = """\
mount -t tmpfs tmpfs /etc/ssh
PATH=$1/bin:$PATH
export PATH
sh "$1/user-data" > "$1/user-data.log" 2>&1
true
"""
SHUTDOWN = '#!/bin/sh\ntouch "{folder}/off"\n'
SYSTEMCTL = "#!/bin/sh\n"
THROTTLED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error></Errors>
<RequestID>0</RequestID></Response>"""
TOKEN, DATA = "ClientToken", "UserData"
Answer = tuple[int, bytes]
Hook = Callable[[str, str], None]
"""Is called with each action, `before` it and `after` it, when its answer is not sent yet."""


def nothing(action: str, moment: str) -> None:
    """Let an action pass."""


class FakeEc2:
    """An account whose instances run."""

    def __init__(self, shelf: Shelf) -> None:
        self.hook: Hook = nothing
        self.throttled = 0
        """Number of calls that are refused from now on, since there are too many."""
        self.seconds_per_second = 1
        """How much faster than its script says an instance ends itself."""
        self.actions: list[str] = []
        self._shelf = shelf
        self._machines: dict[str, Machine] = {}
        self._by_token: dict[str, Answer] = {}
        self._lock = threading.RLock()
        # Machines end with the thread that starts them.
        self._hands = ThreadPoolExecutor(1)

    @property
    def alive(self) -> list[str]:
        """Instances that have not ended."""
        with self._lock:
            self._look()
            return sorted(self._machines)

    @property
    def volumes(self) -> int:
        """Number of volumes."""
        return len(self._backend.volumes)

    def end(self, instance: str) -> None:
        """End an instance, as EC2 does with spot instances."""
        with self._lock:
            self._backend.terminate_instances([instance])
            self._look()

    def answer(self, service: str, region: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a call."""
        words = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        action = words.get("Action", headers.get("X-Amz-Target", ""))
        self.actions.append(action)
        if self.throttled:
            self.throttled -= 1
            return 503, THROTTLED
        self.hook(action, "before")
        with self._lock:
            self._look()
            answer = self._by_token.get(words.get(TOKEN, "")) or self._asked(service, region, headers, body)
            if action == "RunInstances" and answer[0] == 200 and words[TOKEN] not in self._by_token:
                self._by_token[words[TOKEN]] = answer
                self._boot(re.findall(r"<instanceId>(i-[0-9a-f]+)<", answer[1].decode())[0], words[DATA])
            self._look()
        self.hook(action, "after")
        return answer

    @property
    def _backend(self) -> Any:
        return ec2_backends[ACCOUNT][REGION]

    def _asked(self, service: str, region: str, headers: dict[str, str], body: bytes) -> Answer:
        """Moto's answer; it stands in for what is sent to the real address."""
        found = requests.post(f"https://{service}.{region}.amazonaws.com/", data=body, headers=headers, timeout=30)
        return found.status_code, found.content

    def _boot(self, instance: str, user_data: str) -> None:
        machine = next(one for one in self._shelf.machines if one.process is None)
        script = base64.b64decode(user_data).decode()
        script = re.sub(r" \+ (\d+) ", lambda found: f" + {int(found[1]) // self.seconds_per_second} ", script)
        (machine.folder / "off").unlink(missing_ok=True)
        (machine.folder / "bin").mkdir(exist_ok=True)
        for name, text in (("shutdown", SHUTDOWN.format(folder=machine.folder)), ("systemctl", SYSTEMCTL)):
            (machine.folder / "bin" / name).write_text(text)
            (machine.folder / "bin" / name).chmod(0o755)
        (machine.folder / "user-data").write_text(script.replace("sleep 15", "sleep 0.1"))
        (machine.folder / "first-boot").write_text(FIRST_BOOT)
        config = (machine.folder / "sshd_config").read_text()
        config = re.sub(r"HostKey .*", "HostKey /etc/ssh/ssh_host_ed25519_key", config)
        config = re.sub(r"AuthorizedKeysFile .*", "AuthorizedKeysFile .ssh/authorized_keys", config)
        (machine.folder / "sshd_config").write_text(config)
        self._hands.submit(self._shelf.start, machine, wait=False).result()
        network = self._backend.get_instance(instance).nics[0]
        network.private_ip_address, network.public_ip = machine.address, machine.address
        self._machines[instance] = machine

    def _look(self) -> None:
        """Notice instances that have switched themselves off, and switch off machines whose instance has ended."""
        for instance, machine in list(self._machines.items()):
            if (machine.folder / "off").exists():
                self._backend.terminate_instances([instance])
            if self._backend.get_instance(instance).state == "terminated":
                self._shelf.stop(machine)
                del self._machines[instance]


@contextlib.contextmanager
def running(shelf: Shelf) -> Iterator[FakeEc2]:
    """The account, to which the environment leads boto3 in this process and in those that it starts."""
    fake = FakeEc2(shelf)

    class Handler(BaseHTTPRequestHandler):
        """Takes calls."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            scope = re.search(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/", self.headers["Authorization"])
            assert scope is not None
            kept = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection")}
            code, content = fake.answer(scope[2], scope[1], kept, body)
            with contextlib.suppress(OSError):  # its caller may have died
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with mock_aws(), ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, pytest.MonkeyPatch.context() as patched:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        patched.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        patched.setenv("AWS_DEFAULT_REGION", REGION)
        patched.setenv("AWS_ACCESS_KEY_ID", "AKIATESTING")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
        try:
            yield fake
        finally:
            server.shutdown()
