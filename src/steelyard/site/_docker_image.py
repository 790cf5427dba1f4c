"""Image of site `docker` that needs no registry: Debian's packages and a Java runtime, built once per recipe.

The build is kept as an archive in the cache, named by the hash of its recipe; each daemon imports it once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node import fetch
from steelyard.node.command import run
from steelyard.site._docker_daemon import Daemon, ask, mounted_below, program

Say = Callable[[str], None]

REPOSITORY = "steelyard/node"
VARIANT = "minbase"
DISTRIBUTIONS = ("debian", "ubuntu")
JAVA = "openjdk-17-jre-headless"
OTHER_JAVA = "default-jre-headless"
NEWER_SUITES = frozenset({"trixie", "forky", "sid"})
"""Suites of Debian without the Java that Cassandra 5.0 asks for (there the containers use this machine's), and with
Docker's client in a package of its own."""
BUILD_TIMEOUT_S = 1200.0
PACK_TIMEOUT_S = 300.0
IMPORT_TIMEOUT_S = 300.0
NAMED_LINES = 3
OTHERWISE = 'name an image with site.image, such as "debian:12": Java and the agent are this machine\'s'


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the image."""

    suite: str
    mirror: str
    packages: tuple[str, ...]
    architecture: str

    @property
    def key(self) -> str:
        """Hash of the recipe."""
        words = [VARIANT, self.suite, self.mirror, self.architecture, *self.packages]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]

    @property
    def image(self) -> str:
        """Name of the image, as Docker knows it."""
        return f"{REPOSITORY}:{self.key}"


def recipe(root: Path = Path("/")) -> Recipe:
    """The recipe for this machine: its own suite and mirror. Raises SiteError where it is neither Debian nor Ubuntu, or
    names no mirror."""
    release = _pairs(_text(root / "etc/os-release"))
    suite = release.get("VERSION_CODENAME", "")
    if release.get("ID") not in DISTRIBUTIONS or not suite:
        raise SiteError("an image is built on Debian or Ubuntu only", OTHERWISE)
    sources = [root / "etc/apt/sources.list", *sorted((root / "etc/apt/sources.list.d").glob("*"))]
    mirror = next(mirrors((_text(path) for path in sources), suite), "")
    if not mirror:
        raise SiteError(f"{root / 'etc/apt'} names no mirror of {suite}", OTHERWISE)
    java = OTHER_JAVA if suite in NEWER_SUITES else JAVA
    return Recipe(suite, mirror, (java,), platform.machine())


def packages_of(programs: Iterable[str], root: Path = Path("/")) -> list[str]:
    """Debian packages of Docker's daemon, Docker's client and the builder of images. Read-only."""
    newer = _pairs(_text(root / "etc/os-release")).get("VERSION_CODENAME", "") in NEWER_SUITES
    package = {"dockerd": "docker.io", "docker": "docker-cli" if newer else "docker.io", "debootstrap": "debootstrap"}
    return list(dict.fromkeys(package[name] for name in programs))


def mirrors(sources: Iterable[str], suite: str) -> Iterator[str]:
    """Addresses of a suite's packages in apt's files, of one line (`deb [...] URI SUITE ...`) or of several
    (`URIs:`, `Suites:`). Pure."""
    for text in sources:
        for line in text.splitlines():
            words = re.sub(r"\[[^]]*\]", "", line).split()
            if len(words) > 2 and words[0] == "deb" and words[2] == suite:
                yield words[1]
        for paragraph in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^(\w[\w-]*):\s*(.*)$", paragraph, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and suite in fields.get("Suites", "").split():
                yield from fields.get("URIs", "").split()[:1]


def archive(cache: Path, wanted: Recipe) -> Path:
    """Where the build of a recipe is kept, whether it is there or not."""
    return cache / "docker" / f"image-{wanted.key}.tar"


def lacking(cache: Path) -> str:
    """Why no image can be built here, with its mend; empty if one can, or is in the cache. Read-only."""
    try:
        wanted = recipe()
    except SiteError as error:
        return f"{error.message}; {error.hint}"
    if archive(cache, wanted).is_file():
        return ""
    if os.geteuid() != 0:
        return f"building an image takes root; {OTHERWISE}"
    if program("debootstrap") is None:
        return f"building an image takes the program debootstrap (apt-get install debootstrap); or {OTHERWISE}"
    return ""


async def build(cache: Path, say: Say) -> tuple[Recipe, Path]:
    """The archive of this machine's recipe, built if it is not in the cache: a minute or two. Raises SiteError."""
    wanted = recipe()
    path = archive(cache, wanted)
    if path.is_file():
        return wanted, path
    async with fetch.locked(path.parent, SiteError):
        if not path.is_file():
            for stale in path.parent.glob("build-*"):
                await _discard(stale)
            folder = Path(tempfile.mkdtemp(prefix="build-", dir=path.parent))
            try:
                await _bootstrap(wanted, folder / "root", say)
                say("packing the image")
                argv = ["tar", "--create", "--numeric-owner", "--one-file-system", "--directory", str(folder / "root")]
                await run(None, [*argv, "--file", str(folder / "image.tar"), "."], timeout_s=PACK_TIMEOUT_S)
                (folder / "image.tar").rename(path)
            except CommandFailed as error:
                raise SiteError(f"the image could not be built: {error.message}", OTHERWISE) from error
            finally:
                await _discard(folder)
            say(f"image {wanted.image} is in {path}")
    return wanted, path


async def _bootstrap(wanted: Recipe, root: Path, say: Say) -> None:
    """Debian's own installer, in a mount namespace of its own: what it mounts goes with it."""
    debootstrap = program("debootstrap")
    if debootstrap is None:
        raise SiteError("there is no program debootstrap", f"apt-get install debootstrap; or {OTHERWISE}")
    what = f"{wanted.suite} with {', '.join(wanted.packages)}"
    say(f"building an image of {what} from {wanted.mirror}: a minute or two, once")
    options = [f"--variant={VARIANT}", f"--include={','.join(wanted.packages)}"]
    argv = ["unshare", "--mount", debootstrap, *options, wanted.suite, str(root), wanted.mirror]
    environment = {"DEBIAN_FRONTEND": "noninteractive", "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
    code, lines = await fetch.followed(
        argv, say, environment, mark="I: Configuring", unit="packages", timeout_s=BUILD_TIMEOUT_S
    )
    if code != 0:
        errors = [line for line in lines if line.startswith(("E:", "W:"))] or lines
        raise SiteError(f"debootstrap ended with {code}: {' | '.join(errors[-NAMED_LINES:])}", OTHERWISE)
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        await asyncio.to_thread(shutil.rmtree, root / folder, ignore_errors=True)


async def _discard(folder: Path) -> None:
    """Remove an unfinished build, but never through something that is mounted in it."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    for place in mounted_below(text, folder):
        await run(None, ["umount", str(place)], timeout_s=PACK_TIMEOUT_S, check=False)
    if not mounted_below(Path("/proc/self/mountinfo").read_text(encoding="utf-8"), folder):
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def ensure(daemon: Daemon, identity: str, named: str, cache: Path, say: Say) -> str:
    """Name of an image that a daemon has: the user's, pulled if need be, or our own. Raises SiteError."""
    wanted = None if named else recipe()
    name = wanted.image if wanted is not None else named
    if await _has(daemon, identity, name):
        return name
    try:
        if wanted is None:
            say(f"pulling {named}")
            await ask(daemon, identity, "pull", "--quiet", named, timeout_s=BUILD_TIMEOUT_S)
            return name
        wanted, path = await build(cache, say)
        say(f"importing {wanted.image}")
        change = f"LABEL steelyard.recipe={wanted.key}"
        await ask(daemon, identity, "import", "--change", change, str(path), wanted.image, timeout_s=IMPORT_TIMEOUT_S)
    except CommandFailed as error:
        hint = "see that its name is right and that its registry can be reached" if named else OTHERWISE
        raise SiteError(f"there is no image {name}: {error.message}", hint) from error
    return name


async def _has(daemon: Daemon, identity: str, name: str) -> bool:
    return bool(await ask(daemon, identity, "image", "inspect", "--format", "{{.Id}}", name, check=False))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _pairs(text: str) -> dict[str, str]:
    cut = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip().strip('"') for key, separator, value in cut if separator}
