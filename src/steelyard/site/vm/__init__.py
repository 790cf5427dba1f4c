"""Site `vm`: database nodes are virtual machines of this machine; load nodes are network namespaces on the same
bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.site.vm.refusals import missing_packages
from steelyard.site.vm.settings import Settings
from steelyard.site.vm.site import VmSite

__all__ = ["OWN_PROCESSORS", "Settings", "VmSite", "create", "missing_packages"]

OWN_PROCESSORS = True
"""`node.cpus` is a machine's number of processors, from its start; no quota that could be set later."""


def create(settings: Any, state_folder: Path) -> VmSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return VmSite(Settings.model_validate(settings), state_folder)
