"""Facts of a container, as Docker and the kernel report them, in addition to those of the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node import machine_facts
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.site.docker import containers
from steelyard.site.kernel import cgroup, kernel_settings

FACTS_TIMEOUT_S = 30.0


async def of(node: Node) -> dict[str, str]:
    """Facts of a node. Raises SiteError if Docker does not answer."""
    machine = {**kernel_settings.facts(), **machine_facts.facts()}
    own = {"site": "docker", "address": node.address, **cgroup.in_force(node.cgroups)}
    if node.role == "load":
        return {**machine, **own, **kernel_settings.disk(node.folder), "network": "the machine's"}
    client = node.prefix[: node.prefix.index("exec")]
    name = containers.container_name(node.environment[lease_records.MARKER], node.name)
    try:
        info = json.loads(await _ask(client, "info", "--format", "{{json .}}"))
        described = json.loads(await _ask(client, "container", "inspect", name))[0]
        image = json.loads(await _ask(client, "image", "inspect", str(described["Image"])))[0]
        mounts, limits = [
            (await run(node, ["cat", f"/proc/self/{name}"], timeout_s=FACTS_TIMEOUT_S, watch=True)).stdout
            for name in ("mountinfo", "limits")
        ]
    except (CommandFailed, ValueError, LookupError) as error:
        raise SiteError(f"{node.name}: Docker does not describe its container: {error}") from error
    disk = kernel_settings.disk(node.folder, mounts.decode(errors="replace"))
    inherited = kernel_settings.limits_of(limits.decode(errors="replace"))
    return {**machine, **inherited, **own, **disk, **container_facts(described, info, image)}


async def _ask(client: tuple[str, ...], *words: str) -> bytes:
    return (await run(None, [*client, *words], timeout_s=FACTS_TIMEOUT_S)).stdout


def container_facts(described: Mapping[str, Any], info: Mapping[str, Any], image: Mapping[str, Any]) -> dict[str, str]:
    """Facts from the output of `inspect` and `info`; absent ones are left out. Pure."""
    settings = described.get("HostConfig") or {}
    mounted = {item.get("Destination"): item.get("Type") for item in described.get("Mounts") or ()}
    facts = {
        "network": str(settings.get("NetworkMode", "")),
        "container_image": str((described.get("Config") or {}).get("Image", "")),
        "container_image_id": str(described.get("Image", "")),
        "container_image_bytes": str(image.get("Size", "")),
        "container_engine": f"Docker {info.get('ServerVersion', '')}",
        "container_runtime": str(settings.get("Runtime", "")),
        "container_storage": str(info.get("Driver", "")),
        "container_cgroup_driver": str(info.get("CgroupDriver", "")),
        "container_security": ", ".join(str(option) for option in info.get("SecurityOptions") or ()),
        "container_cores": str(settings.get("CpusetCpus", "")),
        "container_mounts": ", ".join(sorted(f"{place} ({kind})" for place, kind in mounted.items())),
    }
    return {name: text for name, text in facts.items() if text}
