"""Programs of the nodes: Java, the jars of Spark and HDFS from Maven, the jobs, an empty file system. Made once."""

from __future__ import annotations

import hashlib
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from steelyard.model.errors import SystemFault
from steelyard.node import artifacts, fetch
from steelyard.node.command import run
from steelyard.node.java import Java, JavaOf
from steelyard.node.tasks import in_a_thread
from steelyard.system.spark_hdfs import _configuration
from steelyard.system.spark_hdfs._settings import Settings

JAVA: Final = JavaOf("spark-hdfs", "Spark 3.5", 17)
SIZE: Final = "about 206 MB"
SHIPPED: Final = "jars-{spark}-{hadoop}.sha256"
HOME, JARS, JOBS, EMPTY = "home", "jars", "steelyard-jobs.jar", "name"
COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
MANIFEST: Final = "Manifest-Version: 1.0\nMain-Class: Job\n\n"
MAKE_TIMEOUT_S: Final = 120.0
HASH_CHARS: Final = 16
JOB_SOURCE: Final = resources.files(__package__) / "jobs" / "Job.java"


@dataclass(frozen=True)
class Prepared:
    """The same on this machine. `home`: a folder with the jars in `jars`, as Spark wants it."""

    java: Java
    home: Path
    jars_hash: str
    empty: Path
    """Folder of a NameNode that has no files yet."""


def fault(message: str, hint: str) -> SystemFault:
    """The error of this system."""
    return SystemFault(message, hint, system="spark-hdfs")


def folder_of(settings: Settings, cache_folder: Path) -> Path:
    """Folder of the releases in the cache."""
    return cache_folder / f"spark-{settings.version}-hdfs-{settings.hadoop_version}"


def is_installed(settings: Settings, cache_folder: Path) -> bool:
    """Whether the jars are there."""
    return (folder_of(settings, cache_folder) / HOME).is_dir()


def jobs_of(settings: Settings, cache_folder: Path) -> Path:
    """Path of the jar with the jobs, whether it exists or not."""
    key = hashlib.sha256(JOB_SOURCE.read_bytes()).hexdigest()[:HASH_CHARS]
    return folder_of(settings, cache_folder) / f"jobs-{key}" / JOBS


async def ensure(settings: Settings, cache_folder: Path, say: fetch.Say) -> Prepared:
    """Everything, fetched and made if necessary. Raises SystemFault that names the command that installs what is
    missing, and jars that are not those which were fetched."""
    folder, java = folder_of(settings, cache_folder), await JAVA.find()
    what = f"Spark {settings.version} with HDFS {settings.hadoop_version}"
    name = SHIPPED.format(spark=settings.version, hadoop=settings.hadoop_version)
    shipped = artifacts.shipped(__package__, name)
    release = artifacts.Release(what, folder, shipped, "steelyard setup spark-hdfs", fault)

    async def from_maven(into: Path) -> None:
        (jars := into / JARS).mkdir()
        pom = (resources.files(__package__) / "pom.xml").read_bytes()
        versions = [f"-Dspark.version={settings.version}", f"-Dhadoop.version={settings.hadoop_version}"]
        maven = fetch.Maven(what, SIZE, "run it where Maven reaches its repositories", fault)
        await maven.copy(pom, [*versions, "-DincludeScope=runtime"], jars, java.home, say)
        release.check_fetched(list(jars.glob("*.jar")))

    home = await fetch.once(folder, HOME, fault, from_maven)
    jars = sorted((home / JARS).glob("*.jar"))
    checksums = await in_a_thread(lambda: release.check(jars, say))

    async def compiled(into: Path) -> None:
        source = into / "Job.java"
        source.write_bytes(JOB_SOURCE.read_bytes())
        path = ":".join(map(str, jars))
        argv = [str(java.path), "-XX:TieredStopAtLevel=1", "-cp", path, COMPILER, "-classpath", path]
        await run(None, [*argv, "-d", str(into), str(source)], timeout_s=MAKE_TIMEOUT_S)
        _pack(into / JOBS, sorted(into.glob("*.class")))

    await fetch.once(folder, jobs_of(settings, cache_folder).parent.name, fault, compiled)

    async def formatted(into: Path) -> None:
        say("making an empty file system")
        conf = _configuration.of_empty(into / EMPTY, platform.node())
        for file, text in conf.items():
            (into / file).write_text(text, encoding="utf-8")
        argv = [str(java.path), *_configuration.java_options(into, home, settings.heap_mb), _configuration.NAMENODE]
        await run(None, [*argv, "-format", "-nonInteractive"], timeout_s=MAKE_TIMEOUT_S)

    empty = await fetch.once(folder, "empty", fault, formatted)
    return Prepared(java, home, _hash_of(checksums), empty / EMPTY / "current")


def _pack(jar: Path, classes: Sequence[Path]) -> None:
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST)
        for file in classes:
            archive.write(file, file.name)


def _hash_of(checksums: dict[str, str]) -> str:
    text = "".join(f"{checksum} {name}\n" for name, checksum in sorted(checksums.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
