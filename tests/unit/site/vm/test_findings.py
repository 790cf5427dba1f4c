"""Findings of `steelyard doctor` about virtual machines."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from steelyard.site.vm import findings
from steelyard.site.vm.accelerator import Accelerator
from steelyard.site.vm.image import NAMES, Image


def test_the_image_is_there_or_is_still_to_be_built(tmp_path: Path) -> None:
    image = Image(tmp_path, "0123")
    later = findings.machines("/bin/qemu", None, image)
    assert (later.state, later.found) == (
        "good",
        "/bin/qemu; the image is not built yet: the first lease builds it in some minutes",
    )
    for name in NAMES:
        (tmp_path / name).touch()
    assert findings.machines("/bin/qemu", None, image).found == "/bin/qemu; the image is there"
    lacking = findings.machines(None, "it takes root", image)
    assert (lacking.state, lacking.found) == ("poor", "qemu-system-x86_64: it takes root")


def test_a_trial_of_kvm_has_its_time_and_how_to_try_again() -> None:
    when = datetime(2026, 11, 24, 0, 10, tzinfo=UTC)
    failed = findings.tried(Accelerator(name="tcg", why="a guest did not boot", tried=when))
    assert failed.state == "poor"
    assert failed.found == f"a guest did not boot ({when.astimezone():%Y-%m-%d %H:%M})"
    assert failed.hint.endswith("`steelyard setup vm` tries KVM again")
    works = findings.tried(Accelerator(name="kvm", why="a guest booted"))
    assert (works.state, works.found) == ("good", "a guest booted")
    assert "not known yet" in findings.tried(None).found
