"""One virtual machine: its files on this machine, its command line, its identity, and how it is reached.

Its root file system is a copy-on-write layer in the lease's folder. The disk for data is in the cache, under the node's
name: what is brought to a node, and its snapshots, outlive the lease.
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.site.kernel import network
from steelyard.site.kernel.programs import program
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import keys
from steelyard.site.ssh.connection import Connection
from steelyard.site.ssh.inventory import Machine
from steelyard.site.vm import accelerator as vm_accelerator
from steelyard.site.vm import image as vm_image
from steelyard.site.vm import scripts
from steelyard.site.vm.accelerator import Accelerator
from steelyard.site.vm.image import Image

PREFIX_LENGTH: Final = 16
QUICK_TIMEOUT_S: Final = 60.0
"""Time limit for making a disk, and for QEMU to be ready to run."""
CONSOLE_LINES: Final = 4
DRAFT: Final = ".draft"
"""End of the name of a disk that is being made."""
DRAFT_LIVES_S: Final = 2 * vm_image.MAKE_TIMEOUT_S


@dataclass(frozen=True)
class Files:
    """Files of one machine on this one."""

    folder: Path
    """Folder for the lease and machine, removed with the lease."""
    data: Path
    """Disk that outlives the lease."""

    @property
    def layer(self) -> Path:
        """Copy-on-write layer over the image's root file system."""
        return self.folder / "root.qcow2"

    @property
    def identity(self) -> Path:
        """Archive with the identity of a machine."""
        return self.folder / "identity.tar"

    @property
    def console(self) -> Path:
        """Console output of the machine."""
        return self.folder / "console.log"

    @property
    def key(self) -> Path:
        """The machine's own key."""
        return self.folder / "key"


def files(state: Path, cache: Path, identity: str, name: str) -> Files:
    """Places of a machine's files; nothing is made."""
    return Files(lease_records.nodes_folder(state, identity) / name, cache / "vm" / "nodes" / f"{name}.img")


def process_name(identity: str, name: str) -> str:
    """Name of a machine in the table of processes."""
    return f"sy-{identity}-{name}"


def hardware_address(number: int) -> str:
    """Address of the machine's network interface, the same in every lease."""
    return f"02:73:79:00:{number >> 8:02x}:{number & 255:02x}"


def identity_archive(name: str, addresses: Mapping[str, str], machine_key: bytes, user_key: bytes) -> bytes:
    """Archive that a machine unpacks over its root file system: name, address, keys, and who the others are. Pure."""
    address = addresses[name]
    names = "".join(f"{other_address} {other}\n" for other, other_address in addresses.items())
    contents = {
        "etc/hostname": (f"{name}\n".encode(), 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n{names}".encode(), 0o644),
        scripts.ADDRESS_FILE: (f"{address}/{PREFIX_LENGTH}\n".encode(), 0o644),
        "etc/steelyard/authorized_keys": (user_key, 0o600),
        "etc/ssh/steelyard_key": (machine_key, 0o600),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, (content, mode) in contents.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@dataclass(frozen=True)
class Shape:
    """Parts of a machine."""

    memory_mb: int
    processors: int
    disk_cache: str


def qemu_words(
    process: str, number: int, port: str, places: Files, image: Image, shape: Shape, accelerator: Accelerator
) -> list[str]:
    """QEMU's options for one machine, which goes to the background once it runs. `port`: its TAP device. Pure."""
    cached = f"cache={shape.disk_cache}"
    layer = f"file={quoted(places.layer)},format=qcow2,werror=report,{cached}"
    data = f"file={quoted(places.data)},format=raw,werror=report,discard=unmap,{cached}"
    identity = f"file={quoted(places.identity)},format=raw,readonly=on"
    words = [*vm_accelerator.machine_words(process, shape.memory_mb, shape.processors), *accelerator.words]
    words += ["-daemonize", "-serial", f"file:{quoted(places.console)}"]
    words += ["-kernel", str(image.kernel), "-initrd", str(image.first), "-append", "console=ttyS0 panic=-1 quiet"]
    disks = ((scripts.ROOT_DISK, layer), (scripts.DATA_DISK, data), (scripts.IDENTITY_DISK, identity))
    for name, drive in disks:
        words += ["-drive", f"if=none,id={name},{drive}"]
        words += ["-device", f"virtio-blk-pci,drive={name},serial={name}"]
    words += ["-netdev", f"tap,id=net,ifname={port},script=no,downscript=no"]
    words += ["-device", f"virtio-net-pci,netdev=net,mac={hardware_address(number)},romfile="]
    return [*words, "-device", "virtio-rng-pci"]


def quoted(path: Path) -> str:
    """A path as QEMU's options want it, where commas separate. Pure."""
    return str(path).replace(",", ",,")


async def prepare(
    caller: Node, name: str, addresses: Mapping[str, str], places: Files, image: Image, user_key: bytes
) -> str:
    """Make a machine's files; the line that its key takes in ssh's list of known machines. Raises SiteError."""
    places.folder.mkdir(parents=True, exist_ok=True)
    places.data.parent.mkdir(parents=True, exist_ok=True)
    try:
        await keys.make(caller, places.key)
        layer = ["-f", "qcow2", "-F", "raw", "-b", str(image.root), str(places.layer)]
        argv = [program("qemu-img") or "qemu-img", "create", "-q", *layer]
        await run(caller, argv, timeout_s=QUICK_TIMEOUT_S)
        forget_drafts(places.data.parent, time.time())
        if not places.data.exists():
            draft = places.data.with_suffix(f".{os.getpid()}{DRAFT}")
            await vm_image.make_disk(draft)
            draft.rename(places.data)
    except CommandFailed as error:
        raise SiteError(f"{name}: {error.message}", "run `steelyard doctor` for details") from error
    archive = identity_archive(name, addresses, places.key.read_bytes(), user_key)
    places.identity.touch(mode=0o600)
    places.identity.write_bytes(archive)
    return f"{addresses[name]} {keys.public(places.key)}\n"


def forget_drafts(folder: Path, now_s: float) -> None:
    """Remove drafts of disks whose writer was killed: none is written for longer than the time limit of making one.
    Process ids would not suffice, because of containers that share a cache."""
    for draft in folder.glob(f"*{DRAFT}"):
        with contextlib.suppress(OSError):
            if now_s - draft.stat().st_mtime > DRAFT_LIVES_S:
                draft.unlink()


async def boot(caller: Node, identity: str, agent: Path, qemu: Sequence[str], name: str) -> None:
    """Start a machine in the namespace of its lease's bridge. Raises SiteError with QEMU's output."""
    within = (str(agent), "enter", "--netns", str(network.path(network.switch(identity))), "--")
    argv = [*within, program(vm_accelerator.QEMU) or vm_accelerator.QEMU, *qemu]
    try:
        await run(caller, argv, timeout_s=QUICK_TIMEOUT_S)
    except CommandFailed as error:
        lines = error.stderr_tail.strip().splitlines() or [error.message]
        raise SiteError(f"{name}: QEMU did not start: {lines[-1]}") from error


def connection(identity: str, name: str, address: str, ssh_config: Path, agent: Path) -> Connection:
    """Connection to a machine: the user's ssh program, with the lease's own keys, from the namespace of its bridge."""
    control = ssh_connection.control_folder() / f"{identity}-{name}"
    within = ssh_connection.connection(Machine(name=name, connect=address), control, str(ssh_config))
    mark = ("env", f"{lease_records.MARKER}={identity}")
    inside = (*mark, str(agent), "enter", "--netns", str(network.path(network.switch(identity))), "--")
    return Connection(name, (*inside, *within.argv), address)


def console_tail(places: Files) -> str:
    """The last lines of a machine's console."""
    try:
        text = places.console.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-CONSOLE_LINES:])


def is_up(places: Files) -> bool:
    """Whether a machine has come as far as sshd."""
    try:
        return scripts.READY in places.console.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
