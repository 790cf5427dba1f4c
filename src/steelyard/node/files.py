"""Files on a node: directly where the conductor sees them under the same paths, otherwise through the agent.

Where they are the conductor's own, nothing is started and bytes are read and written outside the event loop only if
they may be many. Every function takes absolute paths as the node sees them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from steelyard.model.errors import CommandFailed, NodeError
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.node.command import Completed, run
from steelyard.node.folders import cache_folder
from steelyard.node.tasks import in_a_thread

FILES_TIMEOUT_S = 60.0
"""Time limit for an action on few files."""
BRING_TIMEOUT_S = 1800.0
"""Time limit for bringing a program to a node: 100 MB over a slow link."""
READ_MOST_BYTES = 2 << 20
MISSING = 3
"""Exit code of `steelyard-agent files read` for a missing file."""
KEY_CHARS = 16


async def put(node: Node, path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file, with its folders; `mode` are its permission bits. Raises OSError or CommandFailed."""
    if node.files == "same":
        _write(path, content, mode)
        return
    options = [] if mode is None else ["--mode", f"{mode:o}"]
    # Its length: a connection that breaks looks like the end of the input.
    await _files(node, "write", str(path), "--bytes", str(len(content)), *options, stdin=content)


async def read(node: Node, path: Path, from_byte: int = 0, most: int = READ_MOST_BYTES) -> bytes:
    """Contents of a file after its first `from_byte` bytes, at most its last `most`; empty if it is missing. Raises
    CommandFailed."""
    if node.files == "same":
        return await in_a_thread(lambda: _read(path, from_byte, most))
    words = ["files", "read", str(path), "--from", str(from_byte), "--most", str(most)]
    argv = [agent.on(node), *words]
    done = await run(node, argv, timeout_s=FILES_TIMEOUT_S, watch=True, check=False)
    if done.exit_code not in (0, MISSING):
        raise CommandFailed(node.name, argv, done.exit_code, done.stderr.decode(errors="replace"))
    return done.stdout


async def sizes(node: Node, folder: Path) -> dict[str, int]:
    """Every file below a folder: relative name to bytes, sorted; empty if there is no such folder."""
    if node.files == "same":
        return await in_a_thread(lambda: _sizes(folder))
    done = await _files(node, "list", str(folder))
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return {str(row["name"]): int(row["bytes"]) for row in sorted(rows, key=lambda row: str(row["name"]))}


async def make_folders(node: Node, *paths: Path) -> None:
    """Create folders, with those above them. Idempotent."""
    if node.files == "same":
        for path in paths:
            path.mkdir(parents=True, exist_ok=True)
        return
    await _files(node, "folders", *map(str, paths))


async def remove(node: Node, *paths: Path, below: Path) -> None:
    """Remove files or trees, which may be missing. Raises NodeError for a path that is not below `below`."""
    for path in paths:
        if not path.is_relative_to(below) or path == below or ".." in path.parts:
            raise NodeError(f"{node.name}: {path} is not below {below}: not removed")
    if node.files == "same":
        await in_a_thread(lambda: _remove(paths))
        return
    if paths:
        await _files(node, "remove", "--below", str(below), *map(str, paths))


async def move(node: Node, source: Path, target: Path) -> None:
    """Rename a file or tree within a file system. Raises OSError or CommandFailed."""
    if node.files == "same":
        source.rename(target)
        return
    await run(node, ["mv", "--", str(source), str(target)], timeout_s=FILES_TIMEOUT_S, watch=True)


async def clone(node: Node, source: Path, target: Path) -> None:
    """Hard links of a tree, or copies where links do not work. Raises OSError or CommandFailed."""
    if node.files == "same":
        await in_a_thread(lambda: _clone(source, target))
        return
    await _files(node, "clone", str(source), str(target))


async def texts(node: Node, *paths: Path) -> dict[Path, str]:
    """Contents of small text files, such as those of /proc and /sys on a node; without those that cannot be read."""
    processes_elsewhere = node.processes == "through" and any(path.is_relative_to("/proc") for path in paths)
    if node.files == "same" and not processes_elsewhere:
        return {path: content for path in paths if (content := _text(path)) is not None}
    done = await _files(node, "texts", *map(str, paths))
    return {Path(path): str(content) for path, content in json.loads(done.stdout).items()}


def cache_of(node: Node) -> Path:
    """The node's folder for files that outlive a lease, as the node sees it."""
    return cache_folder() if node.cache is None else node.cache


async def bring(node: Node, what: Path, key: str = "") -> Path:
    """Path on the node of a file or tree of this machine, which is sent there if need be: once per `key`, the name of
    its content (default: a checksum of it). Its checksum is compared when it has come and whenever it is used again.
    Raises CommandFailed, or NodeError if it came damaged or was changed."""
    if node.programs == "same":
        return what
    digest = await in_a_thread(lambda: checksum(what))
    folder = cache_of(node) / "brought" / (key or digest[:KEY_CHARS])
    place = folder / what.name
    if node.files == "same":
        if not place.exists():
            await in_a_thread(lambda: _clone(what, place))
        _refuse_changed(node, place, digest, await in_a_thread(lambda: checksum(place)))
        return place
    done = folder / f".{what.name}.sha256"
    if (await read(node, done)).decode(errors="replace").strip() == digest:
        _refuse_changed(node, place, digest, await _sum(node, place))
        return place
    await make_folders(node, folder)
    content = await in_a_thread(lambda: _packed(what))
    argv = ["tar", "-x", "-f", "-", "-C", str(folder)]
    await run(node, argv, timeout_s=BRING_TIMEOUT_S, watch=True, stdin=content)
    if (arrived := await _sum(node, place)) != digest:
        raise NodeError(f"{node.name}: {what.name} arrived damaged: checksum {arrived[:12]}, sent {digest[:12]}")
    await put(node, done, digest.encode())
    return place


def checksum(what: Path) -> str:
    """SHA-256 of a file or tree, as `steelyard-agent files sum` computes it: over each file's SHA-256 and relative
    name, sorted by name."""
    tree = what.is_dir()
    names = sorted(_followed(what)) if tree else [what.name]
    digest = hashlib.sha256()
    for name in names:
        with (what / name if tree else what).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{content}  {name}\n".encode())
    return digest.hexdigest()


def _refuse_changed(node: Node, place: Path, sent: str, there: str) -> None:
    if there != sent:
        raise NodeError(
            f"{node.name}: {place} differs from the file that was copied: checksum {there[:12]}, sent {sent[:12]}",
            f"remove {place.parent} on the node, so that it is copied again; find out who changed it",
            node=node.name,
        )


async def _sum(node: Node, place: Path) -> str:
    """Checksum of a file or tree on a node; empty if it is missing."""
    done = await run(node, [agent.on(node), "files", "sum", str(place)], timeout_s=BRING_TIMEOUT_S, watch=True)
    return done.stdout.decode().strip()


async def _files(node: Node, *words: str, stdin: bytes = b"", timeout_s: float = FILES_TIMEOUT_S) -> Completed:
    return await run(node, [agent.on(node), "files", *words], timeout_s=timeout_s, watch=True, stdin=stdin)


def _write(path: Path, content: bytes, mode: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is not None:
        # Before its content: no other user may read it even for a moment.
        path.touch(mode=mode)
        path.chmod(mode)
    path.write_bytes(content)


def _read(path: Path, from_byte: int, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(from_byte, os.fstat(file.fileno()).st_size - most))
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _sizes(folder: Path) -> dict[str, int]:
    by_name: dict[str, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            # It may be renamed or removed meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISREG((status := path.lstat()).st_mode):
                    by_name[str(path.relative_to(folder))] = status.st_size
    return dict(sorted(by_name.items()))


def _followed(folder: Path) -> list[str]:
    """Relative names of a tree's files; links count as their targets, as in the archive that is sent."""
    names = []
    for place, _, files in os.walk(folder, followlinks=True):
        names += [str(Path(place, name).relative_to(folder)) for name in files if Path(place, name).is_file()]
    return names


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file systems differ or links are not allowed. A copy is on the disk when
    this returns, and not in memory: what the conductor read and wrote must not serve a node as page cache beyond its
    limit, nor be written back while it is measured."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)
        for path in (target, source):
            _forget(path)


def _forget(path: Path) -> None:
    """Write a file's content to its disk and drop it from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _clone(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        copy: Callable[[str, str], None] = lambda here, there: link_or_copy(Path(here), Path(there))  # noqa: E731
        shutil.copytree(source, target, copy_function=copy, dirs_exist_ok=True)
    else:
        link_or_copy(source, target)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _packed(what: Path) -> bytes:
    """A tar archive of a file or tree, with links followed and without owners."""
    with (
        tempfile.SpooledTemporaryFile(max_size=256 << 20) as file,
        tarfile.open(fileobj=file, mode="w", dereference=True) as archive,
    ):
        archive.add(what, arcname=what.name, filter=_without_owner)
        archive.close()
        file.seek(0, io.SEEK_SET)
        return file.read()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
