"""Apache Spark on HDFS, from Maven's jars: NameNode and Master on the first node, DataNode and Worker on all others."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.model.errors import SystemFault
from steelyard.node import folders
from steelyard.system.spark_hdfs import _release
from steelyard.system.spark_hdfs._elastic import ElasticSparkHdfs
from steelyard.system.spark_hdfs._settings import Settings
from steelyard.system.spark_hdfs._system import SparkHdfs

__all__ = ["Settings", "SparkHdfs", "create", "missing_packages"]


def create(settings: Settings, cache_folder: Path) -> ElasticSparkHdfs:
    """Make the system; no side effects."""
    return ElasticSparkHdfs(settings, cache_folder)


async def missing_packages() -> tuple[str, ...]:
    """Debian packages that `prepare` needs: a Java 17, curl, and Maven until the jars are installed."""
    missing = list(await SparkHdfs.curl.missing())
    try:
        await _release.JAVA.find()
    except SystemFault:
        missing.append("openjdk-17-jre-headless")
    if shutil.which("mvn") is None and not _release.is_installed(Settings(), folders.cache_folder()):
        missing.append("maven")
    return tuple(missing)
