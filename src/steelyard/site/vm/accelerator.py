"""Accelerator of virtual machines: the processor's own virtualisation (KVM), or emulation (TCG).

That /dev/kvm is there does not say that a guest runs under it: where a machine is a guest itself, kernels may hang. So
the image's own kernel is booted once with a deadline, and the outcome is kept for as long as this machine runs, or
until `steelyard setup vm` tries again.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from steelyard.atomic_file import replace_file
from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.site.kernel.programs import program
from steelyard.site.vm import scripts
from steelyard.site.vm.image import Image

Name = Literal["kvm", "tcg"]

QEMU = "qemu-system-x86_64"
DEVICE = Path("/dev/kvm")
TRIAL_TIMEOUT_S = 15.0
"""A guest under KVM is through in 1 to 3 s."""
TRIAL_MEMORY_MB = 192
TRANSLATED_MB = 256
"""Memory for translated code of each emulated machine, in addition to its own."""
TRY_AGAIN = "`steelyard setup vm` tries KVM again"
OVERHEAD_MB = 64
"""Memory that each virtual machine takes in addition to its own and its translated code."""


class Accelerator(Value):
    """Way in which virtual machines run, with the reason."""

    name: Name
    why: str
    """Observation, in words."""
    tried: datetime | None = None
    """When a guest was booted to find out; None if none was."""

    @property
    def words(self) -> list[str]:
        """Options of QEMU. Emulated machines keep to four levels of page tables, which are quicker to walk."""
        if self.name == "kvm":
            # Time that the machines of a lease take from each other is not a disturbance from outside.
            return ["-accel", "kvm", "-cpu", "host,kvm-steal-time=off"]
        return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATED_MB}", "-cpu", "max,la57=off"]

    @property
    def overhead_mb(self) -> int:
        """Memory of this machine that each virtual machine takes in addition to its own."""
        return OVERHEAD_MB + (TRANSLATED_MB if self.name == "tcg" else 0)


class _Kept(Value):
    """Outcome of a trial boot, as it is written."""

    boot: str
    image: str
    qemu: str
    works: bool
    why: str
    tried: datetime

    @property
    def accelerator(self) -> Accelerator:
        """Conclusion from the trial."""
        return Accelerator(name="kvm" if self.works else "tcg", why=self.why, tried=self.tried)


def unusable(device: Path = DEVICE) -> str:
    """Reason why KVM cannot even be tried; empty if it can. Read-only."""
    if not device.exists():
        return f"{device} does not exist"
    return "" if os.access(device, os.R_OK | os.W_OK) else f"this user may not use {device}"


async def choose(
    wanted: Literal["auto", "kvm", "tcg"], image: Image, caller: Node, *, again: bool = False, device: Path = DEVICE
) -> Accelerator:
    """The accelerator for machines with this image; `caller` is this machine, marked with the lease that asks. `again`:
    no earlier trial counts. Raises SiteError where KVM is demanded and does not work."""
    if wanted == "tcg":
        return Accelerator(name="tcg", why='site.accelerator = "tcg"')
    problem = unusable(device)
    chosen = Accelerator(name="tcg", why=problem) if problem else (await _tried(image, caller, again=again)).accelerator
    if wanted == "kvm" and chosen.name != "kvm":
        hint = f'site.accelerator = "auto" emulates instead{"" if problem else f"; {TRY_AGAIN}"}'
        raise SiteError(f"KVM does not work here: {chosen.why}", hint)
    return chosen


def known(image: Image, qemu: str, device: Path = DEVICE) -> Accelerator | None:
    """Answer of `choose` without a trial boot; None if it needs one. Read-only."""
    if problem := unusable(device):
        return Accelerator(name="tcg", why=problem)
    kept = _read(image, qemu)
    return None if kept is None else kept.accelerator


async def version(caller: Node) -> str:
    """Version of QEMU, as it reports itself. Raises SiteError."""
    path = program(QEMU)
    if path is None:
        raise SiteError(f"program {QEMU} not found", "run `steelyard setup vm`, or: apt-get install qemu-system-x86")
    try:
        done = await run(caller, [path, "--version"], timeout_s=TRIAL_TIMEOUT_S)
    except CommandFailed as error:
        raise SiteError(f"{path} does not run: {error.message}") from error
    first = (done.stdout.decode(errors="replace").splitlines() or [""])[0]
    return first.removeprefix("QEMU emulator version ").strip()


def machine_words(name: str, memory_mb: int, processors: int) -> list[str]:
    """Options of QEMU that every machine has, a trial boot's, too. It is named in the table of processes. Pure."""
    return [
        *("-name", f"{name},process={name}", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", "-m", f"{memory_mb}M", "-smp", str(processors)),
    ]


async def _tried(image: Image, caller: Node, *, again: bool) -> _Kept:
    qemu = await version(caller)
    kept = None if again else _read(image, qemu)
    if kept is None:
        works, why = await _trial_boot(image, caller)
        boot, tried = lease_records.boot_id(), lease_records.utc_now()
        kept = _Kept(boot=boot, image=image.key, qemu=qemu, works=works, why=why, tried=tried)
        path = _path(image)
        replace_file(path, kept.model_dump_json(indent=2) + "\n", draft=path.with_suffix(f".{os.getpid()}.draft"))
    return kept


async def _trial_boot(image: Image, caller: Node) -> tuple[bool, str]:
    """Whether a guest starts its first program, with the observation. Ends within TRIAL_TIMEOUT_S and a few
    seconds, whatever hangs."""
    accelerator = Accelerator(name="kvm", why="")
    # The outer limit holds also if this process is killed meanwhile.
    argv = [
        *("timeout", "--signal=KILL", f"{2 * TRIAL_TIMEOUT_S:g}"),
        *(program(QEMU) or QEMU, *machine_words("sy-trial", TRIAL_MEMORY_MB, 1), *accelerator.words),
        *("-kernel", str(image.kernel), "-initrd", str(image.first), "-serial", "stdio"),
        *("-append", f"console=ttyS0 panic=-1 quiet {scripts.TRIAL_WORD}"),
    ]
    try:
        done = await run(caller, argv, timeout_s=TRIAL_TIMEOUT_S, check=False)
    except CommandFailed:
        return False, f"a guest under KVM did not boot within {TRIAL_TIMEOUT_S:g} s"
    if scripts.TRIED in done.stdout.decode(errors="replace"):
        return True, "a guest booted under KVM"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return False, f"a guest under KVM did not boot: {lines[-1] if lines else f'QEMU exited with code {done.exit_code}'}"


def _read(image: Image, qemu: str) -> _Kept | None:
    """The outcome of an earlier trial boot, if it was of the same image, QEMU and boot of this machine."""
    try:
        kept = _Kept.model_validate_json(_path(image).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
    same = (kept.boot, kept.image, kept.qemu) == (lease_records.boot_id(), image.key, qemu)
    return kept if same else None


def _path(image: Image) -> Path:
    return image.folder.parent / "kvm.json"
