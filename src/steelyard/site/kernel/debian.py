"""Root file systems from Debian's packages, without a registry: a recipe of this machine's own suite and mirror, and
Debian's installer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.model.errors import SiteError
from steelyard.node import fetch
from steelyard.node.command import run
from steelyard.site.kernel import mountinfo
from steelyard.site.kernel.programs import program

Say = Callable[[str], None]

VARIANT = "minbase"
DISTRIBUTIONS = ("debian", "ubuntu")
JAVA = "openjdk-17-jre-headless"
OTHER_JAVA = "default-jre-headless"
NEWER_SUITES = frozenset({"trixie", "forky", "sid"})
"""Suites of Debian without the Java that Cassandra 5.0 asks for (there nodes use this machine's, or bring their own),
and with Docker's client in a separate package."""
BUILD_TIMEOUT_S = 1200.0
UMOUNT_TIMEOUT_S = 60.0
NAMED_LINES = 3
DISPENSABLE = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")
"""Folders that are removed from a root file system: nothing on a node reads them."""


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a root file system."""

    suite: str
    mirror: str
    packages: tuple[str, ...]
    architecture: str

    @property
    def key(self) -> str:
        """Hash of the recipe."""
        words = [VARIANT, self.suite, self.mirror, self.architecture, *self.packages]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def recipe(
    otherwise: str,
    more: Sequence[str] = (),
    distributions: Sequence[str] = DISTRIBUTIONS,
    root: Path = Path("/"),
) -> Recipe:
    """The recipe for this machine: its own suite and mirror, a Java runtime and `more` packages. Raises SiteError where
    it runs another distribution, or names no mirror; `otherwise` is what to do then."""
    release = _release(root)
    suite = release.get("VERSION_CODENAME", "")
    if release.get("ID") not in distributions or not suite:
        named = " or ".join(name.capitalize() for name in distributions)
        raise SiteError(f"an image can be built on {named} only", otherwise)
    sources = [root / "etc/apt/sources.list", *sorted((root / "etc/apt/sources.list.d").glob("*"))]
    mirror = next(mirrors((_text(path) for path in sources), suite), "")
    if not mirror:
        raise SiteError(f"{root / 'etc/apt'} names no mirror of {suite}", otherwise)
    java = OTHER_JAVA if suite in NEWER_SUITES else JAVA
    return Recipe(suite, mirror, (java, *more), platform.machine())


def is_newer(root: Path = Path("/")) -> bool:
    """Whether this machine's suite is one of NEWER_SUITES."""
    return _release(root).get("VERSION_CODENAME", "") in NEWER_SUITES


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


async def bootstrap(
    wanted: Recipe, root: Path, say: Say, otherwise: str, environment: Mapping[str, str] | None = None
) -> None:
    """Install a recipe's packages into a new folder, by Debian's own installer in a separate mount namespace: what it
    mounts goes with it. Takes root and a minute or two. Raises SiteError."""
    debootstrap = program("debootstrap")
    if debootstrap is None:
        raise SiteError("program debootstrap not found", f"install debootstrap with apt-get; or {otherwise}")
    what = f"{wanted.suite} with {', '.join(wanted.packages)}"
    say(f"building an image of {what} from {wanted.mirror}: this takes a minute or two, once")
    options = [f"--variant={VARIANT}", f"--include={','.join(wanted.packages)}"]
    argv = ["unshare", "--mount", debootstrap, *options, wanted.suite, str(root), wanted.mirror]
    variables = {"DEBIAN_FRONTEND": "noninteractive", "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
    code, lines = await fetch.followed(
        argv,
        say,
        variables | dict(environment or {}),
        measure=lambda line: "I: Configuring" in line,
        unit="packages",
        timeout_s=BUILD_TIMEOUT_S,
    )
    if code != 0:
        errors = [line for line in lines if line.startswith(("E:", "W:"))] or lines
        raise SiteError(f"debootstrap exited with code {code}: {' | '.join(errors[-NAMED_LINES:])}", otherwise)
    for folder in DISPENSABLE:
        await asyncio.to_thread(shutil.rmtree, root / folder, ignore_errors=True)


async def discard(folder: Path) -> None:
    """Remove an unfinished build, but never through something that is mounted in it."""
    for place in mountinfo.below(mountinfo.here(), folder):
        await run(None, ["umount", str(place)], timeout_s=UMOUNT_TIMEOUT_S, check=False)
    if not mountinfo.below(mountinfo.here(), folder):
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _release(root: Path) -> dict[str, str]:
    """Contents of /etc/os-release."""
    cut = (line.partition("=") for line in _text(root / "etc/os-release").splitlines())
    return {key.strip(): value.strip().strip('"') for key, separator, value in cut if separator}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
