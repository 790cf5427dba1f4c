"""The image of virtual machines for tests."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.model.errors import SiteError
from steelyard.node.folders import cache_folder
from steelyard.site.vm import image


def image_or_skip() -> image.Image:
    """Build the image, or skip where Debian's packages cannot be had."""
    try:
        return asyncio.run(image.build(cache_folder(), print))
    except SiteError as error:
        if "debootstrap exited" in error.message:
            pytest.skip(f"this network gives no image: {error.message}")
        raise
