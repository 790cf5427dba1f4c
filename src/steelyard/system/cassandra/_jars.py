"""Cassandra's jars: from Maven by the checked-in pom, or from a folder or tarball that the user names. Fetched once."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.system.cassandra._java import Java
from steelyard.system.cassandra._settings import Settings

Say = Callable[[str], None]

FETCH_TIMEOUT_S = 900.0
LOCK_TIMEOUT_S = 1200.0
LOCK_POLL_S = 0.2
COMPLETE = "complete"
SERVER_JAR = "cassandra-all-*.jar"
SAY_EVERY_FILES = 25


def folder_of(settings: Settings, cache_folder: Path) -> Path:
    """Where the release is kept: one folder a version, or one for each folder or tarball that was named."""
    if settings.jars is None:
        return cache_folder / f"cassandra-{settings.version}"
    source = Path(settings.jars).expanduser()
    stamp = (
        f"{source.resolve()} {source.stat().st_mtime_ns} {source.stat().st_size}" if source.exists() else str(source)
    )
    return cache_folder / f"cassandra-named-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"


@contextlib.asynccontextmanager
async def locked(folder: Path, timeout_s: float = LOCK_TIMEOUT_S) -> AsyncIterator[None]:
    """Hold a folder against other Steelyards of this machine. Raises SystemFault after `timeout_s`."""
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    with (folder / "lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise SystemFault(
                        f"{folder} has been locked by another process for {timeout_s:g} s", system="cassandra"
                    ) from error
            await asyncio.sleep(LOCK_POLL_S)
        yield


def have(settings: Settings, cache_folder: Path) -> tuple[Path, ...] | None:
    """The class path (sorted, so that an archive of classes fits it), None if it must be fetched first."""
    if settings.jars is not None and (source := Path(settings.jars).expanduser()).is_dir():
        return _in_folder(source)
    folder = folder_of(settings, cache_folder)
    library = (folder / "lib").resolve()
    return tuple(sorted(library.glob("*.jar"))) if (library / COMPLETE).is_file() else None


async def ensure(settings: Settings, cache_folder: Path, java: Java, say: Say) -> tuple[Path, ...]:
    """The class path, fetched if need be. Raises SystemFault that names the command that installs what is missing."""
    if (jars := have(settings, cache_folder)) is not None:
        return jars
    folder = folder_of(settings, cache_folder)
    async with locked(folder):
        if (jars := have(settings, cache_folder)) is not None:
            return jars
        temporary = Path(tempfile.mkdtemp(prefix="lib.tmp-", dir=folder))
        try:
            if settings.jars is None:
                await _from_maven(settings.version, java, temporary, say)
            else:
                await asyncio.to_thread(_from_tarball, Path(settings.jars).expanduser(), temporary)
            if not list(temporary.glob(SERVER_JAR)) and not list(temporary.glob("apache-cassandra-*.jar")):
                raise SystemFault("there is no Cassandra among the jars that were fetched", system="cassandra")
            (temporary / COMPLETE).touch()
            temporary.chmod(0o755)
            shutil.rmtree(folder / "lib", ignore_errors=True)
            temporary.rename(folder / "lib")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    jars = have(settings, cache_folder) or ()
    say(f"{len(jars)} jars in {folder / 'lib'}")
    return jars


def _in_folder(source: Path) -> tuple[Path, ...]:
    for folder in (source, source / "lib"):
        if jars := tuple(sorted(folder.resolve().glob("*.jar"))):
            return jars
    raise SystemFault(
        f"there are no jars in {source} nor in its folder lib", "name a release's folder or tarball", system="cassandra"
    )


def _from_tarball(source: Path, into: Path) -> None:
    """Only the jars of the release's own `lib` are taken."""
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
            f"system.jars: cannot read {source}: {error}", "name a folder of jars or a tarball", system="cassandra"
        ) from error


async def _from_maven(version: str, java: Java, into: Path, say: Say) -> None:
    """`mvn dependency:copy-dependencies` with the pom of this package."""
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemFault(
            f"no mvn to fetch Cassandra {version} with",
            "as root: apt-get install -y maven; or set system.jars to a folder of jars or a tarball",
            system="cassandra",
        )
    say(f"fetching Cassandra {version} with {maven}: about 100 jars, 66 MB")
    pom = into / "pom.xml"
    pom.write_bytes((resources.files(__package__) / "pom.xml").read_bytes())
    argv = [maven, "-B", "-f", str(pom), "dependency:copy-dependencies", f"-Dcassandra.version={version}"]
    argv += ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "JAVA_HOME": str(java.home)},
    )
    try:
        tail = await asyncio.wait_for(_follow(process, say), FETCH_TIMEOUT_S)
    except TimeoutError:
        raise CommandFailed("", argv, None, f"limit {FETCH_TIMEOUT_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        errors = [line for line in tail if "ERROR" in line] or tail
        raise SystemFault(
            f"mvn could not fetch Cassandra {version}: {' | '.join(errors[:3])}",
            "see that Maven reaches its repositories, or set system.jars to a folder of jars or a tarball",
            system="cassandra",
        )
    pom.unlink()


async def _follow(process: asyncio.subprocess.Process, say: Say) -> list[str]:
    """Say how many files have come; the last lines for an error."""
    assert process.stdout is not None
    tail: list[str] = []
    files = 0
    async for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip()
        tail = [*tail[-39:], line]
        if "Downloaded from" in line:
            files += 1
            if files % SAY_EVERY_FILES == 0:
                say(f"{files} files")
    await process.wait()
    return tail
