"""Apache Cassandra 3.0 to 5.0 from Maven's jars: started in parallel, filled once, restored in seconds."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.model.errors import SystemFault
from steelyard.node import folders
from steelyard.system.cassandra import _jars, _java
from steelyard.system.cassandra._elastic import ElasticCassandra
from steelyard.system.cassandra._existing import ExistingCassandra
from steelyard.system.cassandra._older import OlderCassandra
from steelyard.system.cassandra._settings import Settings
from steelyard.system.cassandra._system import Cassandra

__all__ = ["Cassandra", "Settings", "create", "missing_packages"]

JAVA_PACKAGE = "openjdk-17-jre-headless"
MAVEN_PACKAGE = "maven"


def create(settings: Settings, cache_folder: Path) -> ElasticCassandra | ExistingCassandra:
    """Make the system; no side effects."""
    if not settings.managed:
        return ExistingCassandra(settings)
    return (ElasticCassandra if settings.line.views else OlderCassandra)(settings, cache_folder)


async def missing_packages(settings: Settings | None = None) -> tuple[str, ...]:
    """Debian packages that `prepare` needs: a Java 17 if the release runs on it, and Maven until the jars are
    installed."""
    settings, missing = settings or Settings(), []
    if settings.line.java == _java.NEEDED.major:
        try:
            await _java.find()
        except SystemFault:
            missing.append(JAVA_PACKAGE)
    if shutil.which("mvn") is None and _jars.installed_class_path(settings, folders.cache_folder()) is None:
        missing.append(MAVEN_PACKAGE)
    return tuple(missing)
