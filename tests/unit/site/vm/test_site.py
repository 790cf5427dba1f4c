"""Site `vm` where it needs no virtual machine: settings, QEMU's words, identities, accelerators, refusals."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.leases import records as lease_records
from steelyard.model.errors import SiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node import machine_facts
from steelyard.node.base import Node
from steelyard.node.processor import RunningProgram
from steelyard.site import vm
from steelyard.site.base import Request, helpers_time_s, on_this_machine, own_network
from steelyard.site.kernel import debian
from steelyard.site.vm import accelerator, machine, refusals, scripts, steps
from steelyard.site.vm import image as vm_image
from steelyard.site.vm.accelerator import Accelerator
from steelyard.site.vm.image import Image
from steelyard.site.vm.machine import Files, Shape

RECIPE = debian.Recipe("bookworm", "http://one.example/debian", ("jre", *vm_image.PACKAGES), "x86_64")
EMULATED = Accelerator(name="tcg", why="/dev/kvm does not exist")


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path / "vm" / "image-0123", "0123")


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which virtual machines can be made."""
    monkeypatch.setattr(refusals, "no_machine", lambda settings: None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"default_memory_mb": 100},
        {"default_processors": 0},
        {"accelerator": "xen"},
        {"disk_cache": "unsafe"},
        {"subnet": "10"},
        {"subnet": "127.1"},
        {"subnet": "10.256"},
        {"image": "debian"},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        vm.Settings.model_validate(wrong)


def test_shares_the_machine_but_no_network_clock_or_kernel(tmp_path: Path) -> None:
    site = vm.create(vm.Settings(), tmp_path / "state")
    assert site.shares == {"cpu", "memory", "disk"}
    assert on_this_machine(site)
    assert own_network(site)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_s_command_line(tmp_path: Path, image: Image) -> None:
    places = Files(tmp_path / "a, b", tmp_path / "n3.img")
    words = machine.qemu_words("sy-0123abcd-n3", 3, "n3", places, image, Shape(512, 2, "none"), EMULATED)
    pairs = set(pairwise(words))
    assert {
        ("-name", "sy-0123abcd-n3,process=sy-0123abcd-n3"),
        ("-m", "512M"),
        ("-smp", "2"),
        ("-accel", "tcg,thread=multi,tb-size=256"),
        ("-netdev", "tap,id=net,ifname=n3,script=no,downscript=no"),
        ("-device", "virtio-net-pci,netdev=net,mac=02:73:79:00:00:03,romfile="),
        ("-device", "virtio-blk-pci,drive=data,serial=data"),
        ("-serial", f"file:{tmp_path}/a,, b/console.log"),
    } <= pairs
    layer = next(word for word in words if word.startswith("if=none,id=root"))
    assert layer.endswith(f"file={tmp_path}/a,, b/root.qcow2,format=qcow2,werror=report,cache=none")
    assert "-daemonize" in words
    assert len(machine.process_name("0123abcd", "n99")) <= 15


def test_time_that_machines_of_a_lease_take_from_each_other_is_no_steal() -> None:
    assert Accelerator(name="kvm", why="").words == ["-accel", "kvm", "-cpu", "host,kvm-steal-time=off"]
    assert Accelerator(name="kvm", why="").overhead_mb < EMULATED.overhead_mb


def test_a_machine_is_told_who_it_is() -> None:
    addresses = {"n1": "10.117.0.1", "n2": "10.117.0.2", "l1": "10.117.1.1"}
    content = machine.identity_archive("n2", addresses, b"secret", b"public")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        texts = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
        modes = {entry.name: entry.mode for entry in archive}
    assert texts["etc/hostname"] == b"n2\n"
    assert texts["etc/steelyard/address"] == b"10.117.0.2/16\n"
    assert b"10.117.1.1 l1" in texts["etc/hosts"]
    assert (texts["etc/ssh/steelyard_key"], modes["etc/ssh/steelyard_key"]) == (b"secret", 0o600)


def test_the_image_is_named_by_all_that_it_is_made_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = vm_image.key_of(RECIPE)
    assert vm_image.image(tmp_path, RECIPE).folder == tmp_path / "vm" / f"image-{key}"
    assert not vm_image.image(tmp_path, RECIPE).complete
    # The scripts are constants of the package.
    monkeypatch.setattr(vm_image.scripts, "SECOND_INIT", "other")
    assert vm_image.key_of(RECIPE) != key


def test_an_image_is_built_on_debian_only(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")
    with pytest.raises(SiteError, match="on Debian only"):
        vm_image.recipe(tmp_path, "x86_64")
    with pytest.raises(SiteError, match="need x86_64, but this is aarch64"):
        vm_image.recipe(tmp_path, "aarch64")


def test_without_the_device_machines_are_emulated(image: Image, tmp_path: Path) -> None:
    device, caller = tmp_path / "kvm", lease_records.marked({})
    chosen = asyncio.run(accelerator.choose("auto", image, caller, device=device))
    assert chosen == Accelerator(name="tcg", why=f"{device} does not exist")
    with pytest.raises(SiteError, match=r"KVM does not work here: .* does not exist"):
        asyncio.run(accelerator.choose("kvm", image, caller, device=device))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes programs of a shell that are found before those of this machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def write(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return write


@pytest.fixture
def device(programs: Callable[[str, str], None], tmp_path: Path) -> Path:
    """KVM, and a QEMU under which a guest boots once `mended` is there; it counts the boots."""
    (tmp_path / "kvm").touch()
    boots = f"echo boot >> {tmp_path}/boots; [ -e {tmp_path}/mended ] && echo {scripts.TRIED} || echo no vcpu >&2"
    version = "echo QEMU emulator version 7.2.17"
    programs(accelerator.QEMU, f'case "$1" in --version) {version};; *) {boots};; esac')
    return tmp_path / "kvm"


def test_a_trial_boot_is_made_once_and_its_outcome_is_kept(image: Image, device: Path, tmp_path: Path) -> None:
    image.folder.mkdir(parents=True)
    caller = lease_records.marked({})
    assert accelerator.known(image, "7.2.17", device) is None
    for _ in range(2):
        chosen = asyncio.run(accelerator.choose("auto", image, caller, device=device))
        assert (chosen.name, chosen.why) == ("tcg", "a guest under KVM did not boot: no vcpu")
    assert (tmp_path / "boots").read_text() == "boot\n"
    assert accelerator.known(image, "7.2.17", device) == chosen
    assert accelerator.known(image, "8.0", device) is None, "another QEMU may do better"
    with pytest.raises(SiteError, match="did not boot: no vcpu") as caught:
        asyncio.run(accelerator.choose("kvm", image, caller, device=device))
    assert caught.value.hint.endswith("`steelyard setup vm` tries KVM again")


def test_setup_tries_kvm_anew(image: Image, device: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood in the way of one trial may be gone: a busy machine, a device that another program had."""

    async def build(cache: Path, say: Any) -> Image:
        return image

    image.folder.mkdir(parents=True)
    caller = lease_records.marked({})
    first = asyncio.run(accelerator.choose("auto", image, caller, device=device))
    (tmp_path / "mended").touch()
    # The image takes minutes and a mirror.
    monkeypatch.setattr(vm_image, "build", build)
    asyncio.run(vm.VmSite(vm.Settings(), tmp_path / "state", device=device).prepare())
    second = asyncio.run(accelerator.choose("auto", image, caller, device=device))
    assert (first.name, second.name) == ("tcg", "kvm")
    assert (tmp_path / "boots").read_text() == "boot\nboot\n"
    assert first.tried is not None
    assert second.tried is not None
    assert first.tried < second.tried


def test_drafts_of_disks_are_left_to_living_writers_only(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    for name, age_s in (("n1.7.draft", 10_000), ("n2.8.draft", 5), ("n1.img", 10_000)):
        (nodes / name).touch()
        os.utime(nodes / name, (100_000 - age_s, 100_000 - age_s))
    machine.forget_drafts(nodes, 100_000.0)
    assert sorted(path.name for path in nodes.iterdir()) == ["n1.img", "n2.8.draft"]
    machine.forget_drafts(tmp_path / "none", 100_000.0)


def test_making_a_disk_removes_what_a_kill_left(
    tmp_path: Path, image: Image, programs: Callable[[str, str], None]
) -> None:
    places = Files(tmp_path / "lease" / "n1", tmp_path / "nodes" / "n1.img")
    stale = tmp_path / "nodes" / "n1.7.draft"
    stale.parent.mkdir()
    stale.touch()
    os.utime(stale, (0, 0))
    last = 'for word; do file="$word"; done'
    programs("ssh-keygen", f'{last}; echo secret > "$file"; echo ssh-ed25519 AAAA steelyard > "$file.pub"')
    programs("qemu-img", "exit 0")
    programs("mke2fs", "while [ $# -gt 1 ]; do file=$1; shift; done; touch $file")
    caller = lease_records.marked({})
    line = asyncio.run(machine.prepare(caller, "n1", {"n1": "10.117.0.1"}, places, image, b"public"))
    assert line == "10.117.0.1 ssh-ed25519 AAAA\n"
    assert [path.name for path in places.data.parent.iterdir()] == ["n1.img"]


def test_a_second_lease_is_told_what_really_helps(tmp_path: Path, register: Path) -> None:
    """Which cache another lease's disks are in is not compared, so another one is no way out."""
    now = lease_records.utc_now()
    other = lease_records.Record(
        id="0a1b2c3d", site="vm", study="first study", owner=lease_records.owner(), created=now, until=now
    )
    lease_records.write(lease_records.record_path(tmp_path, other.id), other)
    with pytest.raises(SiteError, match="first study") as caught:
        steps._claim_disks(other.model_copy(update={"id": "ffffffff"}), tmp_path)
    assert caught.value.hint == (
        "wait for it, or interrupt that study and rerun it later: a machine has one lease of site vm at "
        "a time, whatever STEELYARD_CACHE and STEELYARD_STATE say"
    )


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("limits", "needed_mb", "message"),
    [
        ({"cpus": 0.5}, None, "a virtual machine has whole processors"),
        ({"cpus": 4096.0}, None, "but there are"),
        ({"memory_mb": 64}, None, "does not boot with less than 192"),
        ({"memory_mb": 512}, 500, "a node needs 500 MB and its kernel 96, but its virtual machine has 512"),
        ({}, 900, None),
        ({"memory_mb": 512, "cpus": 1.0}, 300, None),
    ],
)
def test_limits_that_a_machine_cannot_have(
    limits: dict[str, Any], needed_mb: int | None, message: str | None, tmp_path: Path
) -> None:
    request = Request("study", 1, 1, NodeLimits.model_validate(limits))
    refusal = vm.create(vm.Settings(default_memory_mb=1024), tmp_path).refuse(request, needed_mb)
    assert refusal is None if message is None else message in str(refusal)


@pytest.mark.usefixtures("able")
def test_machines_that_do_not_fit_into_memory_are_refused(tmp_path: Path) -> None:
    each_mb = int(machine_facts.facts()["memory_available_mb"]) // 3
    site = vm.create(vm.Settings(default_memory_mb=each_mb), tmp_path)
    assert site.refuse(Request("study", 1, 1), None) is None
    assert f"8 nodes of {each_mb + 64} MB" in str(site.refuse(Request("study", 8, 1), None))


def test_a_shape_is_asked_by_the_node_else_by_the_site(tmp_path: Path) -> None:
    settings = vm.Settings(default_memory_mb=700, default_processors=2, disk_cache="writeback")
    assert steps.shape_of(settings, Node("n1", "database", "", (), tmp_path)) == Shape(700, 2, "writeback")
    limited = Node("n1", "database", "", (), tmp_path, memory_mb=300, cpus=1.0)
    assert steps.shape_of(settings, limited) == Shape(300, 1, "writeback")


def test_the_time_of_machines_is_a_helper_s_and_not_that_of_other_people_s(tmp_path: Path) -> None:
    site = vm.create(vm.Settings(), tmp_path)
    names = {"sy-0123abcd-n1": 2.0, "sy-0123abcd-n2": 1.0, "qemu-system-x86": 50.0, "sy-0123abcd-sw": 7.0}
    programs = {(pid, 1): RunningProgram(name, used_s) for pid, (name, used_s) in enumerate(names.items(), 1)}
    assert helpers_time_s([site], programs) == 3.0
    assert site.helper_times_s({}) == {}
