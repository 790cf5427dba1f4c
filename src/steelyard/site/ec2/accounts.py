"""Regions in which a state folder ever launched something, so that instances are found although the record of their
lease is lost."""

from __future__ import annotations

from pathlib import Path

from steelyard.leases import identity
from steelyard.leases import records as lease_records


def remember(state: Path, region: str) -> None:
    """Note a region before anything is launched there; it survives a power cut. Raises FileError or SiteError."""
    with lease_records.locked(state):
        if region not in (known := regions(state)):
            identity.written(_path(state), [*known, region])


def regions(state: Path) -> list[str]:
    """Every region that was noted."""
    return identity.lines(_path(state))


def _path(state: Path) -> Path:
    return state / "ec2" / "regions"
