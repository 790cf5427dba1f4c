"""Last steps of taking a lease back on this machine: its folders, its record, its line in the register."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError


async def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it. Idempotent. Raises SiteError."""
    try:
        await asyncio.to_thread(shutil.rmtree, folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SiteError(f"cannot remove {error.filename}: {error.strerror}") from error


async def remove_record(lease: Lease) -> None:
    """Remove a lease's record and forget it in the register. Idempotent. Raises FileError or SiteError."""
    try:
        lease.record.unlink(missing_ok=True)
        lease.record.with_suffix(".draft").unlink(missing_ok=True)
    except OSError as error:
        raise SiteError(f"cannot remove {lease.record}: {error.strerror}") from error
    if lease_register.usable():
        lease_register.leave(lease.id)
