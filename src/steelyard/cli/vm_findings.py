"""Findings of `steelyard doctor` about virtual machines: QEMU, and whether KVM runs a guest."""

from __future__ import annotations

import asyncio

from steelyard.cli.finding import Finding, judged
from steelyard.leases import records as lease_records
from steelyard.model.errors import SteelyardError
from steelyard.node.folders import cache_folder
from steelyard.site import _vm_accelerator, _vm_image, _vm_refusals
from steelyard.site._this_machine import program
from steelyard.site._vm_settings import Settings

EMULATED = "site vm emulates its processors, many times slower; switch on virtualisation in the firmware, or nesting"


def of_this_machine() -> list[Finding]:
    """What site `vm` needs. Boots nothing."""
    reason = _vm_refusals.no_machine(Settings())
    path = program(_vm_accelerator.QEMU)
    text = f"{_vm_accelerator.QEMU}: {reason}" if reason else f"{path}; the image is there, or can be built"
    return [judged("site vm", text, reason is None, "only site vm needs it: as root, steelyard setup vm"), _kvm()]


def _kvm() -> Finding:
    if problem := _vm_accelerator.unusable():
        return judged("kvm", problem, False, EMULATED)
    try:
        image = _vm_image.image(cache_folder(), _vm_image.recipe())
        qemu = asyncio.run(_vm_accelerator.version(lease_records.marked({})))
        known = _vm_accelerator.known(image, qemu)
    except SteelyardError:
        known = None
    if known is None:
        text = f"{_vm_accelerator.DEVICE}; whether a guest runs under it is not known yet"
        return judged("kvm", text, False, "steelyard setup vm tries it")
    return judged("kvm", known.why, known.name == "kvm", EMULATED)
