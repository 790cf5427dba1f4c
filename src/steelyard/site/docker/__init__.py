"""Site `docker`: database nodes are containers on this machine; load nodes are plain processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.site.docker import image
from steelyard.site.docker.settings import Settings
from steelyard.site.docker.site import DockerSite
from steelyard.site.kernel.programs import program

__all__ = ["DockerSite", "Settings", "create", "missing_packages"]


def create(settings: Any, state_folder: Path) -> DockerSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return DockerSite(Settings.model_validate(settings), state_folder)


async def missing_packages() -> Sequence[str]:
    """Debian packages that `steelyard setup docker` installs: those of the daemon and the builder of images that are
    not there."""
    programs = ("dockerd", "docker", "debootstrap")
    return image.packages_of(name for name in programs if program(name) is None)
