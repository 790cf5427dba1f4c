"""Cassandra's jars: from Maven by the checked-in pom, or from a folder or tarball that the user names. Fetched once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Sequence
from importlib import resources
from pathlib import Path

from steelyard.model.errors import SystemFault
from steelyard.node import artifacts, fetch
from steelyard.system.cassandra._java import Java
from steelyard.system.cassandra._settings import Settings

Say = fetch.Say
COMPLETE = "complete"
SHIPPED = "jars-{version}.sha256"
"""List of checksums of a version; others have one of their own from their first use on."""
SERVER_JAR = "cassandra-all-*.jar"


def folder_of(settings: Settings, cache_folder: Path) -> Path:
    """Folder of the release: one folder per version, or one for each folder or tarball that the user named."""
    source = settings.build.files
    if source is None:
        return cache_folder / f"cassandra-{settings.build.release}"
    stamp = (
        f"{source.resolve()} {source.stat().st_mtime_ns} {source.stat().st_size}" if source.exists() else str(source)
    )
    return cache_folder / f"cassandra-named-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"


def size_of(settings: Settings) -> str:
    """Size of the download of a release."""
    return f"about {settings.line.mb} MB"


def shipped_list(settings: Settings) -> str | None:
    """The shipped list of checksums; None for a version without one, and for jars that the user named."""
    build = settings.build
    return artifacts.shipped(__package__, SHIPPED.format(version=build.release)) if build.files is None else None


def _release(settings: Settings, cache_folder: Path) -> artifacts.Release:
    folder, setup = folder_of(settings, cache_folder), "steelyard setup cassandra"
    return artifacts.Release(f"Cassandra {settings.build.label}", folder, shipped_list(settings), setup, fault)


def checked(settings: Settings, cache_folder: Path, jars: Sequence[Path], say: Say) -> dict[str, str]:
    """SHA-256 of the jars by name, before any of them runs. Raises SystemFault that names those that are not what was
    fetched. A folder that the user named is the user's to change."""
    source = settings.build.files
    if source is not None and source.is_dir():
        return artifacts.sums(jars)
    return _release(settings, cache_folder).check(jars, say)


def fault(message: str, hint: str) -> SystemFault:
    """The error of this system."""
    return SystemFault(message, hint, system="cassandra")


@contextlib.asynccontextmanager
async def locked(folder: Path) -> AsyncIterator[None]:
    """Lock a folder against other Steelyard processes on this machine. Raises SystemFault after a time limit."""
    async with fetch.locked(folder, fault):
        yield


def installed_class_path(settings: Settings, cache_folder: Path) -> tuple[Path, ...] | None:
    """The class path (sorted, so that an archive of classes fits it); None if it must be fetched first."""
    source = settings.build.files
    if source is not None and source.is_dir():
        return _in_folder(source)
    folder = folder_of(settings, cache_folder)
    library = (folder / "lib").resolve()
    return tuple(sorted(library.glob("*.jar"))) if (library / COMPLETE).is_file() else None


async def ensure(settings: Settings, cache_folder: Path, java: Java, say: Say) -> tuple[Path, ...]:
    """The class path, fetched if necessary. Raises SystemFault that names the command that installs what is missing."""
    if (jars := installed_class_path(settings, cache_folder)) is not None:
        return jars
    folder = folder_of(settings, cache_folder)
    async with locked(folder):
        if (jars := installed_class_path(settings, cache_folder)) is not None:
            return jars
        temporary = Path(tempfile.mkdtemp(prefix="lib.tmp-", dir=folder))
        try:
            build = settings.build
            if build.files is None:
                await _from_maven(settings, java, temporary, say)
                _release(settings, cache_folder).check_fetched(list(temporary.glob("*.jar")))
            else:
                await asyncio.to_thread(_from_tarball, build.files, temporary)
            if not list(temporary.glob(SERVER_JAR)) and not list(temporary.glob("apache-cassandra-*.jar")):
                raise SystemFault("Cassandra not found among the downloaded jars", system="cassandra")
            (temporary / COMPLETE).touch()
            temporary.chmod(0o755)
            shutil.rmtree(folder / "lib", ignore_errors=True)
            temporary.rename(folder / "lib")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    jars = installed_class_path(settings, cache_folder) or ()
    say(f"{fetch.size_words(jars)} in {folder / 'lib'}")
    return jars


def _in_folder(source: Path) -> tuple[Path, ...]:
    for folder in (source, source / "lib"):
        if jars := tuple(sorted(folder.resolve().glob("*.jar"))):
            return jars
    raise SystemFault(
        f"no jars in {source} or in its folder lib", "name a release's folder or tarball", system="cassandra"
    )


def _from_tarball(source: Path, into: Path) -> None:
    """Extract the jars in the release's own `lib`, and nothing else."""
    try:
        with tarfile.open(source) as tarball:
            for member in tarball:
                path = Path(member.name)
                if member.isfile() and path.suffix == ".jar" and path.parent.name == "lib" and len(path.parts) <= 3:
                    content = tarball.extractfile(member)
                    if content is not None:
                        (into / path.name).write_bytes(content.read())
    except (OSError, tarfile.TarError) as error:
        raise SystemFault(
            f"cannot read {source}, the build's jars: {error}", "name a folder of jars or a tarball", system="cassandra"
        ) from error


async def _from_maven(settings: Settings, java: Java, into: Path, say: Say) -> None:
    """Run `mvn dependency:copy-dependencies` with the pom of this package."""
    version = settings.build.release
    otherwise = "set system.jars to a folder of jars or a tarball"
    maven = fetch.Maven(f"Cassandra {version}", size_of(settings), otherwise, fault)
    pom = (resources.files(__package__) / "pom.xml").read_bytes()
    options = [f"-Dcassandra.version={version}", "-DincludeScope=runtime", *settings.line.maven]
    await maven.copy(pom, options, into, java.home, say)
