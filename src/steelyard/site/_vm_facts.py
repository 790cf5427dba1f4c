"""Facts of a virtual machine: what it says itself, and what runs it."""

from __future__ import annotations

from pathlib import Path

from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node import machine_facts
from steelyard.node.base import Node
from steelyard.site import _cgroup, _kernel, _node_facts, _vm_accelerator, _vm_image, _vm_steps
from steelyard.site._vm_settings import Settings


async def of(node: Node, record: Path, settings: Settings) -> dict[str, str]:
    """Facts of a node of a lease with this record. Raises SiteError if it does not answer."""
    own = {"site": "vm", "address": node.address, "network": "a bridge of the lease"}
    if node.role == "load":
        machine = {**_kernel.facts(), **machine_facts.facts(), **_kernel.disk(node.folder)}
        return {**machine, **own, **_cgroup.in_force(node.cgroups)}
    try:
        machine = await _node_facts.of_node(node)
    except CommandFailed as error:
        raise SiteError(f"{node.name}: its virtual machine does not say its facts: {error.message}") from error
    lent = lease_records.read(record)
    shape = _vm_steps.shape_of(settings, node)
    running = {
        "vm_accelerator": lent.accelerator if lent is not None else "",
        "vm_accelerator_reason": lent.accelerator_why if lent is not None else "",
        "vm_emulator": f"QEMU {await _vm_accelerator.version(lease_records.marked({}))}",
        "vm_memory_mb": str(shape.memory_mb),
        "vm_processors": str(shape.processors),
        "vm_disk_cache": shape.disk_cache,
        "vm_image": _vm_image.key_of(_vm_image.recipe()),
    }
    return {**machine, **own, **{name: text for name, text in running.items() if text}}
