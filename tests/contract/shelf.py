"""A shelf of machines for tests: real sshd processes, each in network, mount and pid namespaces of its own.

A machine has its own address, process table, home folder (a tmpfs that this process does not see), host key and boot
id, and may have a wrong clock. All of it ends with the process that made it: nothing has a name that outlives it,
except one network interface, which ends with the switch.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SSHD = "/usr/sbin/sshd"
WAIT_S = 20.0
POLL_S = 0.02
OWN_NUMBER = 250
"""Last part of this machine's address on the shelf's network."""
HOME = "/root"
FOLDER = f"{HOME}/.cache/steelyard"
CONFIG = """\
Port 22
ListenAddress 0.0.0.0
ListenAddress ::
HostKey {folder}/key
AuthorizedKeysFile {keys}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
PrintMotd no
UseDNS no
SetEnv STEELYARD_CLOCK_OFFSET_S={clock_offset_s} JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1
"""
INIT = """
set -eu
mount -t tmpfs -o mode=700 tmpfs /root
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind "$1/shadow" /etc/shadow
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
until [ -e "$1/network" ]; do sleep 0.02; done
[ ! -e "$1/boot" ] || sh "$1/boot" "$1"
exec /usr/sbin/sshd -D -E "$1/log" -f "$1/sshd_config"
"""
_numbers = itertools.count(1)


@dataclass
class Machine:
    """One machine of the shelf."""

    name: str
    number: int
    folder: Path
    """Its configuration; it sees this folder, too."""
    address: str
    address6: str
    clock_offset_s: float = 0.0
    process: subprocess.Popen[bytes] | None = None

    @property
    def hardware_address(self) -> str:
        """Of its network interface, the same whenever it is switched on."""
        return f"02:00:00:00:00:{self.number:02x}"

    @property
    def root(self) -> Path:
        """Its file system, as this process can look into it."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return Path(f"/proc/{children.split()[0]}/root")

    @property
    def steelyard(self) -> Path:
        """Steelyard's folder on it."""
        return Path(f"{self.root}{FOLDER}")

    @property
    def log(self) -> str:
        """What its sshd wrote."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")


@dataclass
class Shelf:
    """Machines on one switch."""

    folder: Path
    third: int
    """Third part of the addresses."""
    machines: list[Machine] = field(default_factory=list)
    switch: subprocess.Popen[bytes] | None = None

    @property
    def ssh_config(self) -> Path:
        """What ssh needs to know to get in."""
        return self.folder / "ssh_config"

    def inventory(self, roles: Sequence[str] = (), *, name: str = "shelf.toml", ipv6: bool = False) -> Path:
        """An inventory of the machines, with these roles in their order; the last one drives load."""
        wanted = roles or [*(["database"] * (len(self.machines) - 1)), "load"]
        lines = ['ssh_config = "ssh_config"']
        for machine, role in zip(self.machines, wanted, strict=False):
            address = machine.address6 if ipv6 else machine.address
            lines += ["[[machine]]", f'name = "{machine.name}"', f'address = "{address}"', f'role = "{role}"']
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def settings(self) -> dict[str, object]:
        """Settings of site `ssh` for this shelf."""
        return {"inventory": str(self.inventory())}

    def start(self, machine: Machine, *, wait: bool = True) -> None:
        """Switch a machine on: its disk is empty, its boot id new, its host key the same. A script `boot` in its folder
        is run before sshd starts. `wait`: until it lets in."""
        network = machine.folder / "network"
        network.unlink(missing_ok=True)
        (machine.folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        machine.process = _spawn(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"], [
            "sh", "-c", INIT, "machine", str(machine.folder)
        ])  # fmt: skip
        assert self.switch is not None
        port = f"m{machine.number}"
        _ip(
            self.switch.pid,
            f"link add {port} type veth peer name eth0 address {machine.hardware_address} netns {machine.process.pid}",
            f"link set {port} master br0 up",
        )
        _ip(
            machine.process.pid,
            "link set lo up",
            f"address add {machine.address}/24 dev eth0",
            f"address add {machine.address6}/64 dev eth0 nodad",
            "link set eth0 up",
        )
        network.touch()
        if wait:
            self._until_it_listens(machine)

    def stop(self, machine: Machine) -> None:
        """Pull the plug: everything on the machine is gone at once."""
        assert machine.process is not None
        assert self.switch is not None
        machine.process.kill()
        machine.process.wait(WAIT_S)
        machine.process = None
        # The kernel may have removed it already, with the machine's network.
        _ip(self.switch.pid, f"link delete m{machine.number}", check=False)

    def cut(self, machine: Machine) -> None:
        """Pull the cable: the machine lives, and nobody hears of it."""
        assert self.switch is not None
        _ip(self.switch.pid, f"link set m{machine.number} down")

    def plug(self, machine: Machine) -> None:
        """Put the cable back."""
        assert self.switch is not None
        _ip(self.switch.pid, f"link set m{machine.number} up")

    def _until_it_listens(self, machine: Machine) -> None:
        deadline = time.monotonic() + WAIT_S
        argv = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", machine.address, "true"]
        while subprocess.run(argv, capture_output=True, check=False, timeout=WAIT_S).returncode != 0:
            assert time.monotonic() < deadline, machine.log
            assert machine.process is not None
            assert machine.process.poll() is None, machine.log
            time.sleep(POLL_S)


@contextlib.contextmanager
def running(count: int, clock_offsets_s: Sequence[float] = (), *, on: bool = True) -> Iterator[Shelf]:
    """A shelf of so many machines, switched on or off; everything is undone at the end. Needs root, sshd, ip, unshare
    and nsenter."""
    with tempfile.TemporaryDirectory(prefix="sy-shelf-") as name, contextlib.ExitStack() as stack:
        third = (os.getpid() + 37 * next(_numbers)) % 250
        shelf = Shelf(Path(name), third)
        shelf.folder.chmod(0o755)
        _key(shelf.folder / "user")
        known = []
        for index in range(count):
            machine = _machine(shelf, index + 1, clock_offsets_s[index] if index < len(clock_offsets_s) else 0.0)
            shelf.machines.append(machine)
            public = " ".join((machine.folder / "key.pub").read_text(encoding="ascii").split()[:2])
            known += [f"{machine.address} {public}", f"{machine.address6} {public}"]
        (shelf.folder / "known_hosts").write_text("\n".join(known) + "\n", encoding="ascii")
        shelf.ssh_config.write_text(
            f"User root\nIdentityFile {shelf.folder}/user\nIdentitiesOnly yes\nIdentityAgent none\n"
            f"UserKnownHostsFile {shelf.folder}/known_hosts\nGlobalKnownHostsFile /dev/null\n",
            encoding="ascii",
        )
        shelf.switch = _spawn([], ["sleep", "infinity"])
        stack.callback(_end, shelf.switch)
        interface = f"sy{os.getpid()}x{third}"[:15]
        _ip(
            shelf.switch.pid,
            "link add br0 type bridge",
            "link set br0 up",
            f"link add uplink type veth peer name {interface} netns {os.getpid()}",
            "link set uplink master br0 up",
        )
        stack.callback(_ip, os.getpid(), f"link delete {interface}", check=False)
        _ip(
            os.getpid(),
            f"address add 10.116.{third}.{OWN_NUMBER}/24 dev {interface}",
            f"address add fd00:116:{third:x}::{OWN_NUMBER:x}/64 dev {interface} nodad",
            f"link set {interface} up",
        )
        for machine in shelf.machines:
            stack.callback(_end_machine, machine)
            if on:
                shelf.start(machine)
        yield shelf


def _machine(shelf: Shelf, number: int, clock_offset_s: float) -> Machine:
    folder = shelf.folder / f"m{number}"
    folder.mkdir()
    _key(folder / "key")
    (folder / "sshd_config").write_text(
        CONFIG.format(folder=folder, keys=shelf.folder / "user.pub", clock_offset_s=clock_offset_s), encoding="ascii"
    )
    # An account without a password is not locked only with a star.
    lines = Path("/etc/shadow").read_text(encoding="utf-8").splitlines()
    shadow = ["root:*:19000:0:99999:7:::", *(line for line in lines if not line.startswith("root:"))]
    (folder / "shadow").write_text("\n".join(shadow) + "\n", encoding="utf-8")
    (folder / "shadow").chmod(0o600)
    return Machine(
        f"pi{number}", number, folder, f"10.116.{shelf.third}.{number}", f"fd00:116:{shelf.third:x}::{number:x}",
        clock_offset_s,
    )  # fmt: skip


def _key(path: Path) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "steelyard-test", "-f", str(path)]
    subprocess.run(argv, check=True, capture_output=True, timeout=WAIT_S)


def _spawn(namespaces: Sequence[str], argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """A process in a network of its own that ends with this one; returns when it is there."""
    words = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net", *namespaces, "--", *argv]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    here = os.readlink("/proc/self/ns/net")
    deadline = time.monotonic() + WAIT_S
    while os.readlink(f"/proc/{process.pid}/ns/net") == here:
        assert process.poll() is None, words
        assert time.monotonic() < deadline, words
        time.sleep(POLL_S)
    return process


def _ip(pid: int, *lines: str, check: bool = True) -> None:
    """Network commands in the namespace of a process."""
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"]
    done = subprocess.run(argv, input="\n".join(lines).encode(), capture_output=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0 or not check, done.stderr.decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(WAIT_S)


def _end_machine(machine: Machine) -> None:
    if machine.process is not None:
        _end(machine.process)


def missing() -> str | None:
    """The program that a shelf lacks here, or None."""
    for program, package in (("ip", "iproute2"), ("unshare", "util-linux"), (SSHD, "openssh-server")):
        if shutil.which(program) is None:
            return f"needs {program}: apt-get install {package}"
    return None
