"""EC2 for tests: moto behind HTTP, so that every process sees the same account, with instances that are machines of a
shelf. They have the addresses of their machines, run their user data as cloud-init does, and end with them.

What moto lacks is here: a token that launches nothing twice, boots and reboots, an end from within, calls that are
throttled or whose caller dies. What an instance would do to its own disk, it does to a folder of its machine.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email import message_from_string
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
import requests
from moto import mock_aws
from moto.ec2.models import ec2_backends

from steelyard.site.ec2 import instances
from steelyard.site.ec2.image import DEBIAN
from tests.contract.shelf import Machine, Shelf

ACCOUNT, REGION, AMI = "123456789012", "eu-north-1", "ami-12c6146b"
BOOT = """\
mkdir -p "$1/disk/ssh" "$1/disk/lib"
mount --bind "$1/disk/ssh" /etc/ssh
mount --bind "$1/disk/lib" /var/lib
PATH=$1/bin:$PATH
export PATH
sh "$1/cloud-boothook" > "$1/boot.log" 2>&1
[ -e "$1/disk/booted" ] || sh "$1/x-shellscript" >> "$1/boot.log" 2>&1
touch "$1/disk/booted"
"""
PROGRAMS = {"shutdown": 'touch "{folder}/off"', "systemctl": "", "apt-get": "", "cloud-init": ""}
"""Programs of an instance that would change this machine."""
THROTTLED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error></Errors>
<RequestID>0</RequestID></Response>"""
NOT_PASSED_ON = "host", "connection", "content-length"
END_FOLDER = Path("disk/lib") / Path(instances.END_FOLDER).relative_to("/var/lib")
"""Where an instance's own time is, in the folder of its machine."""
BOOT_TIMEOUT_S = 20.0
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
    def processes(self) -> list[str]:
        """Processes of instances, such as sshd."""
        every = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                every.append(path.read_text(errors="replace").replace("\0", " "))
        return [words for words in every if str(self._shelf.folder) in words]

    @property
    def volumes(self) -> int:
        """Number of volumes."""
        return len(self._backend.volumes)

    def end(self, instance: str) -> None:
        """End an instance, as EC2 does with spot instances."""
        with self._lock:
            self._backend.terminate_instances([instance])
            self._look()

    def let_pass(self, seconds: int) -> None:
        """Let instances have been up for longer, once they have booted."""
        with self._lock:
            machines = list(self._machines.values())
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        for folder in [machine.folder / END_FOLDER for machine in machines]:
            while not (folder / "end").exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            (folder / "booted").write_text(f"{int((folder / 'booted').read_text()) + seconds}\n")

    def reboot(self, instance: str) -> None:
        """Switch an instance off and on again, with what is on its disk."""
        with self._lock:
            self._shelf.stop(self._machines[instance])
            self._start(self._machines[instance])

    def forget_images(self) -> None:
        """Let no image have been baked."""
        for image in [one for one in self._backend.amis.values() if str(one.name).startswith("steelyard-")]:
            self._backend.deregister_image(image.id)

    def answer(self, service: str, region: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a call."""
        words = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        action = words.get("Action", headers.get("X-Amz-Target", ""))
        if action == "CreateImage":  # moto cannot tag snapshots of an image
            body = urlencode({key: one for key, one in words.items() if "TagSpecification.2" not in key}).encode()
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
        shutil.rmtree(machine.folder / "disk", ignore_errors=True)
        (machine.folder / "off").unlink(missing_ok=True)
        (machine.folder / "bin").mkdir(exist_ok=True)
        for name, text in PROGRAMS.items():
            (machine.folder / "bin" / name).write_text(f"#!/bin/sh\n{text.format(folder=machine.folder)}\n")
            (machine.folder / "bin" / name).chmod(0o755)
        for part in message_from_string(base64.b64decode(user_data).decode()).get_payload():
            script = part.get_payload().replace("sleep 15", "sleep 0.1")
            (machine.folder / part.get_content_subtype()).write_text(script)
        (machine.folder / "boot").write_text(BOOT)
        config = (machine.folder / "sshd_config").read_text()
        config = re.sub(r"HostKey .*", "HostKey /etc/ssh/ssh_host_ed25519_key", config)
        config = re.sub(r"AuthorizedKeysFile .*", "AuthorizedKeysFile .ssh/authorized_keys", config)
        (machine.folder / "sshd_config").write_text(config)
        self._start(machine)
        network = self._backend.get_instance(instance).nics[0]
        network.private_ip_address, network.public_ip = machine.address, machine.address
        self._machines[instance] = machine

    def _start(self, machine: Machine) -> None:
        self._hands.submit(self._shelf.start, machine, wait=False).result()

    def _look(self) -> None:
        """Notice instances that have switched themselves off, and switch off machines whose instance has ended."""
        for instance, machine in list(self._machines.items()):
            known = self._backend.get_instance(instance)
            if (machine.folder / "off").exists():
                getattr(self._backend, f"{known.instance_initiated_shutdown_behavior}_instances")([instance])
            if known.state in ("stopped", "terminated"):
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
            kept = {key: value for key, value in self.headers.items() if key.lower() not in NOT_PASSED_ON}
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
        ec2_backends[ACCOUNT][REGION].register_image("debian-12-amd64-20260101").owner_id = DEBIAN
        patched.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        patched.setenv("AWS_DEFAULT_REGION", REGION)
        patched.setenv("AWS_ACCESS_KEY_ID", "AKIATESTING")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
        try:
            yield fake
        finally:
            server.shutdown()
