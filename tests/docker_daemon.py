"""A Docker daemon of the tests' own, as one that runs on the machine already: leases are quick, and nothing that people
have in theirs is touched."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steelyard.model.errors import SiteError
from steelyard.node.folders import cache_folder
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.docker import image
from steelyard.site.kernel import programs

VARIABLE = "DOCKER_HOST"


def image_or_skip() -> None:
    """Build the image, or skip where Debian's packages cannot be had."""
    try:
        asyncio.run(image.build(cache_folder(), print))
    except SiteError as error:
        if "debootstrap exited" in error.message:
            pytest.skip(f"this network gives no image: {error.message}")
        raise


@contextmanager
def running_daemon(folder: Path) -> Iterator[docker_daemon.Own]:
    """Run a daemon with the image in it; users' clients reach it for as long as the block lasts."""
    image_or_skip()
    own = docker_daemon.Own(folder / "run", folder / "data")
    client = programs.program("docker")
    assert client is not None

    async def start() -> None:
        async with docker_daemon.locked(own):
            daemon = await docker_daemon.ensure(own, client)
        await image.ensure(daemon, "", "", cache_folder(), print)

    async def stop() -> None:
        async with docker_daemon.locked(own):
            await docker_daemon.stop(own)

    before = os.environ.get(VARIABLE)
    try:
        asyncio.run(start())
        os.environ[VARIABLE] = own.address
        yield own
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
        asyncio.run(stop())
        shutil.rmtree(folder, ignore_errors=True)
