"""Image of site `vm` that needs no registry: kernel, first file system and root file system from Debian's packages.

A folder in the cache, named by the hash of everything that it is made from. Machines never write to it: each has a
copy-on-write layer over the root file system.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node import fetch
from steelyard.node.command import run
from steelyard.site.kernel import debian
from steelyard.site.kernel.debian import Recipe, Say
from steelyard.site.kernel.programs import program
from steelyard.site.vm import scripts

ARCHITECTURE = "x86_64"
DISTRIBUTIONS = ("debian",)
PACKAGES = ("linux-image-cloud-amd64", "openssh-server", "iproute2", "busybox-static", "tini")
"""In addition to Java: a kernel for virtual machines, sshd, and the programs that start both."""
MAKE_TIMEOUT_S = 600.0
DISK_GB = 32
"""Size of a machine's disks as it sees them; of this machine's disk they take what is written."""
BYTES_PER_INODE = 65536
"""Few inodes make a disk that is formatted at once; a database has large files."""
OTHERWISE = "site docker needs no separate image"
NAMES = ("vmlinuz", "first.img", "root.img")


@dataclass(frozen=True)
class Image:
    """A finished image."""

    folder: Path
    key: str

    @property
    def kernel(self) -> Path:
        """Linux, as the boot loader would load it."""
        return self.folder / NAMES[0]

    @property
    def first(self) -> Path:
        """First file system, in memory."""
        return self.folder / NAMES[1]

    @property
    def root(self) -> Path:
        """Root file system: a raw ext4 disk."""
        return self.folder / NAMES[2]

    @property
    def complete(self) -> bool:
        """Whether it is there."""
        return all((self.folder / name).is_file() for name in NAMES)


def recipe(root: Path = Path("/"), architecture: str = "") -> Recipe:
    """The recipe for this machine. Raises SiteError where it is not Debian, not x86-64, or names no mirror."""
    architecture = architecture or platform.machine()
    if architecture != ARCHITECTURE:
        raise SiteError(f"virtual machines need {ARCHITECTURE}, but this is {architecture}", OTHERWISE)
    return debian.recipe(OTHERWISE, PACKAGES, DISTRIBUTIONS, root)


def key_of(wanted: Recipe) -> str:
    """Hash of all that an image of this recipe is made from. Pure."""
    texts = (scripts.FIRST_INIT, scripts.SECOND_INIT, scripts.SSHD_CONFIG, scripts.MAKE_FIRST)
    words = [wanted.key, str(DISK_GB), str(BYTES_PER_INODE), *scripts.MODULES, *texts]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def image(cache: Path, wanted: Recipe) -> Image:
    """The image of a recipe in the cache, whether present or not."""
    key = key_of(wanted)
    return Image(cache / "vm" / f"image-{key}", key)


def lacking(cache: Path) -> str:
    """Reason why no image can be built here, with a hint; empty if one can, or is in the cache. Read-only."""
    try:
        wanted = recipe()
    except SiteError as error:
        return f"{error.message}; {error.hint}"
    if image(cache, wanted).complete:
        return ""
    if os.geteuid() != 0:
        return "building an image needs root"
    missing = [name for name in ("debootstrap", "mke2fs", "chroot") if program(name) is None]
    return f"building an image needs {', '.join(missing)}; `steelyard setup vm` installs it" if missing else ""


async def build(cache: Path, say: Say) -> Image:
    """The image of this machine's recipe, built if it is not in the cache: some minutes. Raises SiteError."""
    wanted = recipe()
    finished = image(cache, wanted)
    if finished.complete:
        return finished
    async with fetch.locked(finished.folder.parent, SiteError):
        if not finished.complete:
            for stale in finished.folder.parent.glob("build-*"):
                await debian.discard(stale)
            folder = Path(tempfile.mkdtemp(prefix="build-", dir=finished.folder.parent))
            try:
                await _make(wanted, folder, say)
                await debian.discard(finished.folder)
                (folder / "image").rename(finished.folder)
            except CommandFailed as error:
                raise SiteError(
                    f"the image could not be built: {error.message}", "run `steelyard doctor` for details"
                ) from error
            finally:
                await debian.discard(folder)
            say(f"image {finished.key} is in {finished.folder}")
    return finished


async def _make(wanted: Recipe, folder: Path, say: Say) -> None:
    root, place = folder / "root", folder / "image"
    # The kernel's package would make a first file system for every machine there is.
    await debian.bootstrap(wanted, root, say, OTHERWISE, {"INITRD": "No"})
    say("making the initial and root file systems")
    await asyncio.to_thread(_write_files, root)
    place.mkdir()
    made_in = Path("/usr/share/steelyard/out")
    argv = ["sh", "-c", scripts.MAKE_FIRST, "make-first", str(made_in / NAMES[1]), *scripts.MODULES]
    await run(None, ["unshare", "--mount", "chroot", str(root), *argv], timeout_s=MAKE_TIMEOUT_S)
    for name in NAMES[:2]:
        (root / made_in.relative_to("/") / name).rename(place / name)
    for path in (root / "boot").iterdir():
        path.unlink()
    await make_disk(place / NAMES[2], root)


def _write_files(root: Path) -> None:
    """Files that the packages lack: the programs that start a machine, and sshd's settings."""
    shared = root / "usr/share/steelyard"
    for folder in (shared / "out", root / "etc/steelyard", root / scripts.FOLDER.removeprefix("/")):
        folder.mkdir(parents=True, exist_ok=True)
    _write(shared / "first-init", scripts.FIRST_INIT, 0o755)
    _write(root / "sbin/steelyard-init", scripts.SECOND_INIT, 0o755)
    _write(root / "etc/ssh/sshd_config", scripts.SSHD_CONFIG, 0o644)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()


def _write(path: Path, text: str, mode: int) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


async def make_disk(path: Path, content: Path | None = None) -> None:
    """Make a raw disk with an ext4 file system, of holes but for its content. Nothing is mounted. Raises
    CommandFailed."""
    filled: Sequence[str] = [] if content is None else ["-d", str(content)]
    options = ["-q", "-F", "-t", "ext4", "-m", "0", "-i", str(BYTES_PER_INODE)]
    extended = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]
    argv = [program("mke2fs") or "mke2fs", *options, *extended, *filled, str(path), f"{DISK_GB}G"]
    await run(None, argv, timeout_s=MAKE_TIMEOUT_S)
