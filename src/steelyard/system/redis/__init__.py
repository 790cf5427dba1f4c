"""Redis Cluster from Debian's packages: one server for each node, masters with or without replicas."""

from __future__ import annotations

from pathlib import Path

from steelyard.system.redis._elastic import ElasticRedis
from steelyard.system.redis._settings import Settings
from steelyard.system.redis._system import Redis

__all__ = ["Redis", "Settings", "create", "missing_packages"]

missing_packages = Redis.packaged.missing


def create(settings: Settings, cache_folder: Path) -> ElasticRedis:
    """Make the system; no side effects."""
    return ElasticRedis(settings, cache_folder)
