"""Download of third-party releases, once per machine: a lock on the folder, and Maven's ordinary client."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SteelyardError

Say = Callable[[str], None]
Fault = Callable[[str, str], SteelyardError]
"""Creates the caller's own error from a message and a hint."""

FETCH_TIMEOUT_S = 900.0
LOCK_TIMEOUT_S = 1200.0
LOCK_POLL_S = 0.2
TAIL_LINES = 40
DOWNLOADED = re.compile(r"Downloaded from .*\(([\d.]+) (B|kB|MB|GB) at ")
BYTES_PER_MB = 1e6
BYTES = {"B": 1.0, "kB": 1e3, "MB": BYTES_PER_MB, "GB": 1e9}


class Progress(str):
    """A message that the next one replaces."""

    __slots__ = ()


@contextlib.asynccontextmanager
async def locked(folder: Path, fault: Fault, timeout_s: float = LOCK_TIMEOUT_S) -> AsyncIterator[None]:
    """Create and lock a folder against other Steelyard processes of this machine. Raises `fault` after `timeout_s`."""
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    with (folder / "lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise fault(f"{folder} has been locked by another process for {timeout_s:g} s", "") from error
            await asyncio.sleep(LOCK_POLL_S)
        yield


async def once(folder: Path, name: str, fault: Fault, fill: Callable[[Path], Awaitable[None]]) -> Path:
    """The folder `name` below `folder`, which `fill` fills if it is not there; it takes that name when it is whole."""
    target = folder / name
    if target.is_dir():
        return target
    async with locked(folder, fault):
        if not target.is_dir():
            temporary = Path(tempfile.mkdtemp(prefix=f"{name}.tmp-", dir=folder))
            try:
                await fill(temporary)
                temporary.chmod(0o755)
                temporary.rename(target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return target


@dataclass(frozen=True)
class Maven:
    """One request to Maven: purpose (for messages), size, and the alternative source."""

    what: str
    size: str
    otherwise: str
    fault: Fault
    strict: bool = True
    """Whether a file without a right checksum of its repository is an error."""

    async def copy(self, pom: bytes, options: Sequence[str], into: Path, java_home: Path, say: Say) -> None:
        """Run `mvn dependency:copy-dependencies` with a pom into a folder. Raises `fault` if there is no mvn or it
        fails, CommandFailed if it takes too long.

        `java_home`: for a machine without Java. One of its own trusts the certificates that the machine trusts.
        """
        maven = shutil.which("mvn")
        if maven is None:
            raise self.fault(f"no mvn to fetch {self.what}", f"as root: apt-get install -y maven; or {self.otherwise}")
        say(f"fetching {self.what} with {maven}: {self.size}")
        path = into / "pom.xml"
        path.write_bytes(pom)
        checked = ["--strict-checksums"] if self.strict else []
        goal = ["dependency:copy-dependencies", *options, f"-DoutputDirectory={into}"]
        argv = [maven, "-B", *checked, "-f", str(path), *goal]
        own = "JAVA_HOME" in os.environ or shutil.which("java") is not None
        java = {} if own else {"JAVA_HOME": str(java_home)}
        code, tail = await followed(argv, say, java, measure=downloaded_mb, unit="MB")
        if code != 0:
            errors = [line for line in tail if "ERROR" in line] or tail
            raise self.fault(
                f"mvn could not fetch {self.what}: {' | '.join(errors[:3])}",
                f"check that Maven reaches its repositories, or {self.otherwise}",
            )
        path.unlink()


async def followed(
    argv: Sequence[str],
    say: Say,
    environment: dict[str, str],
    *,
    measure: Callable[[str], float],
    unit: str,
    timeout_s: float = FETCH_TIMEOUT_S,
) -> tuple[int, list[str]]:
    """Run a fetching command and report the sum of what its lines measure; returns exit code and last lines. Raises
    CommandFailed after a limit."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    try:
        tail = await asyncio.wait_for(_follow(process, say, measure, unit), timeout_s)
    except TimeoutError:
        raise CommandFailed("", argv, None, f"limit {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, tail


async def _follow(
    process: asyncio.subprocess.Process, say: Say, measure: Callable[[str], float], unit: str
) -> list[str]:
    assert process.stdout is not None
    tail: list[str] = []
    done = 0.0
    async for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip()
        tail = [*tail[-(TAIL_LINES - 1) :], line]
        before, done = done, done + measure(line)
        if int(done) > int(before):
            say(Progress(f"{int(done):,} {unit}"))
    await process.wait()
    return tail


def downloaded_mb(line: str) -> float:
    """Megabytes that a line of Maven's says were downloaded."""
    match = DOWNLOADED.search(line)
    return float(match.group(1)) * BYTES[match.group(2)] / BYTES_PER_MB if match else 0.0


def size_words(paths: Iterable[Path]) -> str:
    """`66 MB`: the size of files that were fetched."""
    return f"{sum(path.stat().st_size for path in paths) / BYTES_PER_MB:,.0f} MB"
