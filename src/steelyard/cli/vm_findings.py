"""Findings of `steelyard doctor` about virtual machines: QEMU, and whether KVM runs a guest."""

from __future__ import annotations

import asyncio

from steelyard.cli.finding import Finding, judged
from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError, SteelyardError
from steelyard.node.folders import cache_folder
from steelyard.site import _vm_accelerator, _vm_image, _vm_refusals
from steelyard.site._this_machine import program
from steelyard.site._vm_accelerator import Accelerator
from steelyard.site._vm_image import Image
from steelyard.site._vm_settings import Settings

EMULATED = "site vm emulates its processors, many times slower; switch on virtualisation in the firmware, or nesting"


def of_this_machine() -> list[Finding]:
    """What site `vm` needs. Boots nothing."""
    path = program(_vm_accelerator.QEMU)
    return [machines(path, _vm_refusals.no_machine(Settings()), _image()), _kvm()]


def machines(path: str | None, reason: str | None, image: Image | None) -> Finding:
    """QEMU and the image, which need not be built yet; `reason`: why there can be no machine. Read-only."""
    there = image is not None and image.complete
    state = "the image is there" if there else "the image is not built yet: the first lease builds it, some minutes"
    text = f"{_vm_accelerator.QEMU}: {reason}" if reason else f"{path}; {state}"
    return judged("site vm", text, reason is None, "only site vm needs it: as root, steelyard setup vm")


def _image() -> Image | None:
    """The image of this machine's recipe, whether it is there or not; None where there can be none."""
    try:
        return _vm_image.image(cache_folder(), _vm_image.recipe())
    except SiteError:
        return None


def _kvm() -> Finding:
    if problem := _vm_accelerator.unusable():
        return judged("kvm", problem, False, EMULATED)
    image = _image()
    try:
        qemu = asyncio.run(_vm_accelerator.version(lease_records.marked({})))
    except SteelyardError:
        return tried(None)
    return tried(None if image is None else _vm_accelerator.known(image, qemu))


def tried(known: Accelerator | None) -> Finding:
    """What a trial boot said of a device that can be used, and when; None: there was none since this machine was
    started. Pure."""
    if known is None:
        text = f"{_vm_accelerator.DEVICE}; whether a guest runs under it is not known yet"
        return judged("kvm", text, False, "steelyard setup vm tries it")
    when = "" if known.tried is None else f" ({known.tried.astimezone():%Y-%m-%d %H:%M})"
    return judged("kvm", known.why + when, known.name == "kvm", f"{EMULATED}; {_vm_accelerator.TRY_AGAIN}")
