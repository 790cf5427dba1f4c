"""Settings of site `vm`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from steelyard.model.value import Value


class Settings(Value):
    """Settings under `[site]` or `[site.vm]` in a study, in addition to `name`, `nodes` and `load_nodes`. Each can be a
    factor. The memory and the processors of a virtual machine are `node.memory_mb` and `node.cpus`."""

    default_memory_mb: int = Field(default=1024, ge=192)
    """Memory of each virtual machine in MiB if `node.memory_mb` is not set."""
    default_processors: int = Field(default=1, ge=1, le=64)
    """Processors of each virtual machine if `node.cpus` is not set."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    """kvm: by the processor's own virtualisation; tcg: emulated in software, many times slower; auto: kvm where a trial
    boot shows that it works, otherwise tcg."""
    disk_cache: Literal["none", "writeback"] = "none"
    """Cache of this machine in front of the disks of virtual machines. none: only the memory of a virtual machine
    caches its files; writeback: this machine's memory does, too."""
    subnet: str = Field(default="10.117", pattern=r"^\d{1,3}\.\d{1,3}$")
    """First two octets of the nodes' addresses; nothing outside a lease ever sees them."""

    @field_validator("subnet")
    @classmethod
    def _two_octets(cls, text: str) -> str:
        first, second = (int(octet) for octet in text.split("."))
        if not 1 <= first <= 223 or first == 127 or second > 255:
            raise ValueError("subnet is the first two octets of an address, such as 10.117")
        return text
