"""Findings of `steelyard doctor` about virtual machines: QEMU, and whether KVM runs a guest."""

from __future__ import annotations

from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError, SteelyardError
from steelyard.model.finding import Finding, judged
from steelyard.node.folders import cache_folder
from steelyard.site.kernel.programs import program
from steelyard.site.vm import accelerator, refusals
from steelyard.site.vm import image as vm_image
from steelyard.site.vm.accelerator import Accelerator
from steelyard.site.vm.image import Image
from steelyard.site.vm.settings import Settings

EMULATED = "site vm emulates its processors, many times slower; enable virtualisation in the firmware, or nesting"


async def of_this_machine(settings: Settings) -> list[Finding]:
    """Needs of site `vm`. Boots nothing."""
    path = program(accelerator.QEMU)
    return [machines(path, refusals.no_machine(settings), _image()), await _kvm()]


def machines(path: str | None, reason: str | None, image: Image | None) -> Finding:
    """QEMU and the image, which need not be built yet; `reason`: why there can be no machine. Read-only."""
    there = image is not None and image.complete
    state = "the image is there" if there else "the image is not built yet: the first lease builds it in some minutes"
    text = f"{accelerator.QEMU}: {reason}" if reason else f"{path}; {state}"
    return judged("site vm", text, reason is None, "only site vm needs it: as root, steelyard setup vm")


def _image() -> Image | None:
    """The image of this machine's recipe, whether present or not; None if there can be none."""
    try:
        return vm_image.image(cache_folder(), vm_image.recipe())
    except SiteError:
        return None


async def _kvm() -> Finding:
    if problem := accelerator.unusable():
        return judged("kvm", problem, False, EMULATED)
    image = _image()
    try:
        qemu = await accelerator.version(lease_records.marked({}))
    except SteelyardError:
        return tried(None)
    return tried(None if image is None else accelerator.known(image, qemu))


def tried(known: Accelerator | None) -> Finding:
    """Result of a trial boot for a usable device, and when; None: there was none since this machine was started.
    Pure."""
    if known is None:
        text = f"{accelerator.DEVICE}; whether a guest runs under it is not known yet"
        return judged("kvm", text, False, "steelyard setup vm tries it")
    when = "" if known.tried is None else f" ({known.tried.astimezone():%Y-%m-%d %H:%M})"
    return judged("kvm", known.why + when, known.name == "kvm", f"{EMULATED}; {accelerator.TRY_AGAIN}")
