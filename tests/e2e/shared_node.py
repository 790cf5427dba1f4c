"""One real Cassandra node for the tests of a pytest process: each has keyspaces of its own and leaves it running."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.node.folders import cache_folder
from steelyard.system.cassandra import Settings
from steelyard.testing.cluster import RunningCluster, running

PORT, STORAGE_PORT, JMX_PORT = 23_142, 23_800, 23_299
"""Not Cassandra's own, which another test may use on the same loopback address."""


def own_cache(folder: Path) -> Path:
    """The jars of everybody's cache, snapshots of the tests' own."""
    cache = folder / "cache"
    cache.mkdir()
    name = f"cassandra-{Settings().version}"
    (cache / name).symlink_to(cache_folder() / name)
    return cache


@contextmanager
def started(folder: Path) -> Iterator[RunningCluster]:
    """The node, on ports that no other process of pytest-xdist uses; its event loop runs in a thread."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    settings = {
        "heap_mb": 256,
        "native_port": PORT + worker,
        "storage_port": STORAGE_PORT + worker,
        "jmx_port": JMX_PORT + worker,
        # Compiled quickly instead of well, as in `brief_java`.
        "jvm_options": ["-XX:TieredStopAtLevel=1"],
        # Off by default since 4.0.
        "yaml": {"materialized_views_enabled": True},
    }
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="shared node")
    thread.start()
    manager = running(folder / "state", cache=own_cache(folder), system_settings=settings)
    try:
        cluster = asyncio.run_coroutine_threadsafe(manager.__aenter__(), loop).result()
        try:
            yield cluster
        finally:
            asyncio.run_coroutine_threadsafe(manager.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
