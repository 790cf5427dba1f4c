"""Reasons why site `vm` cannot lend a request, each with a hint. Read-only."""

from __future__ import annotations

import os
from collections.abc import Sequence

from steelyard.leases import register as lease_register
from steelyard.model.errors import EngineError
from steelyard.node import agent, machine_facts
from steelyard.node.folders import cache_folder
from steelyard.site.base import Refusal, Request, Site, unenforced
from steelyard.site.kernel import memory, processors
from steelyard.site.kernel.programs import program
from steelyard.site.vm import accelerator, image
from steelyard.site.vm.settings import Settings

MOST_NODES = 250
"""Limit per role: the last octet of an address."""
LEAST_MEMORY_MB = 192
"""Below it, the kernel has no room for its first file system."""
OWN_MB = 96
"""Memory of a machine that its kernel and sshd take."""
PACKAGES = {
    accelerator.QEMU: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
}
"""Programs and the Debian packages that they are in."""
TUN = "/dev/net/tun"


async def missing_packages() -> Sequence[str]:
    """Debian packages that `steelyard setup vm` installs: those of QEMU, ssh and the builder of images that are
    missing."""
    return list(dict.fromkeys(package for name, package in PACKAGES.items() if program(name) is None))


def refuse(site: Site, settings: Settings, request: Request, memory_mb_per_node: int | None) -> str | None:
    """The first reason against a request; None if there is none."""
    if (most := max(request.database_nodes, request.load_nodes)) > MOST_NODES:
        return f"{most} nodes of one role were requested, but only {MOST_NODES} addresses are available"
    return (
        unenforced(site, request)
        or _no_processors(request)
        or _no_memory(settings, request, memory_mb_per_node)
        or no_machine(settings)
    )


def no_machine(settings: Settings) -> str | None:
    """Reason why no virtual machine can run here; None if one can."""
    lacking = [name for name in ("net_admin", "sys_admin") if not machine_facts.capable(name)]
    if lacking or os.geteuid() != 0 or not lease_register.usable():
        return "virtual machines on a separate network need root"
    try:
        agent.find()
    except EngineError as error:
        return f"{error.message}: {error.hint}"
    needed = [name for name in PACKAGES if name not in ("debootstrap", "mke2fs") and program(name) is None]
    if needed:
        packages = " ".join(dict.fromkeys(PACKAGES[name] for name in needed))
        return f"program not found: {', '.join(needed)} (`steelyard setup vm`, or: apt-get install {packages})"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} cannot be used: as root, modprobe tun"
    if settings.accelerator == "kvm" and (problem := accelerator.unusable()):
        return f'site.accelerator = "kvm", but {problem}'
    reason = image.lacking(cache_folder())
    return f"no image: {reason}" if reason else None


def _no_processors(request: Request) -> str | None:
    cpus = request.limits.cpus
    if cpus is None:
        return None
    if cpus != round(cpus):
        words = f"node.cpus = {cpus:g}, but a virtual machine has whole processors"
        return Refusal(words, "node.cpus", "a whole number; site local enforces parts of one")
    return processors.too_many(cpus, request.dilation, quota=False)


def _no_memory(settings: Settings, request: Request, memory_mb_per_node: int | None) -> str | None:
    """Whether the system fits into a machine, and the machines into this one."""
    each_mb = settings.default_memory_mb if request.limits.memory_mb is None else request.limits.memory_mb
    if each_mb < LEAST_MEMORY_MB:
        return f"node.memory_mb = {each_mb}, but a virtual machine does not boot with less than {LEAST_MEMORY_MB}"
    if memory_mb_per_node is not None and each_mb < memory_mb_per_node + OWN_MB:
        needed = f"a node needs {memory_mb_per_node} MB and its kernel {OWN_MB}"
        return f"{needed}, but its virtual machine has {each_mb} (node.memory_mb)"
    return memory.too_many(request.database_nodes, each_mb + accelerator.OVERHEAD_MB, request.load_nodes)
