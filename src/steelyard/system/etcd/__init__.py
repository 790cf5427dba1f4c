"""etcd from Debian's packages: one member for each node."""

from __future__ import annotations

from pathlib import Path

from steelyard.system.etcd._settings import Settings
from steelyard.system.etcd._system import Etcd

__all__ = ["Etcd", "Settings", "create", "missing_packages"]


missing_packages = Etcd.packaged.missing


def create(settings: Settings, cache_folder: Path) -> Etcd:
    """Make the system; no side effects."""
    return Etcd(settings, cache_folder)
