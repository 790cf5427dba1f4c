"""Site `ec2`: instances of Amazon EC2, launched for a lease, reached by ssh, ended with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.site.ec2.settings import Settings
from steelyard.site.ec2.site import Ec2Site

__all__ = ["FILES", "Ec2Site", "Settings", "create"]

FILES = {"key_file": "key"}
"""Settings that name a file in the study's folder, and what the file is."""


def create(settings: Any, state_folder: Path) -> Ec2Site:
    """Make the site; no side effects, and no call of EC2. `settings` is a `Settings`."""
    return Ec2Site(Settings.model_validate(settings), state_folder)
