"""Image of site `docker` that needs no registry: Debian's packages and a Java runtime, built once per recipe.

The build is kept as an archive in the cache, named by the hash of its recipe; each daemon imports it once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.model.errors import CommandFailed, LastingSiteError, SiteError
from steelyard.node import fetch
from steelyard.node.command import run
from steelyard.site.docker.daemon import Daemon, ask, shows
from steelyard.site.kernel import debian
from steelyard.site.kernel.debian import Recipe, Say
from steelyard.site.kernel.programs import program

REPOSITORY = "steelyard/node"
PULL_TIMEOUT_S = 1200.0
PACK_TIMEOUT_S = 300.0
IMPORT_TIMEOUT_S = 300.0
MOST_NAMED = 5
"""Most present images that an error names."""
ABSENT = ("manifest unknown", "not found", "does not exist", "access denied", "unauthorized", "name unknown")
"""Docker's words for a registry that answered, and has no such image for this user."""
UNREACHED = (
    *("dial tcp", "no such host", "timeout", "timed out", "unreachable", "connection refused"),
    *("proxyconnect", "x509", ": eof"),
)
"""Docker's words for a registry that did not answer; only the first sentence of an error depends on them."""
OTHERWISE = 'name an image with site.image, such as "debian:12": Java and the agent are this machine\'s'


def recipe(root: Path = Path("/")) -> Recipe:
    """The recipe for this machine: its own suite and mirror. Raises SiteError where it is neither Debian nor Ubuntu, or
    names no mirror."""
    return debian.recipe(OTHERWISE, root=root)


def name_of(wanted: Recipe) -> str:
    """Name of the image of a recipe, as Docker knows it."""
    return f"{REPOSITORY}:{wanted.key}"


def packages_of(programs: Iterable[str], root: Path = Path("/")) -> list[str]:
    """Debian packages of Docker's daemon, Docker's client and the builder of images. Read-only."""
    client = "docker-cli" if debian.is_newer(root) else "docker.io"
    package = {"dockerd": "docker.io", "docker": client, "debootstrap": "debootstrap"}
    return list(dict.fromkeys(package[name] for name in programs))


def archive(cache: Path, wanted: Recipe) -> Path:
    """Folder of the build of a recipe, which need not exist."""
    return cache / "docker" / f"image-{wanted.key}.tar"


def lacking(cache: Path) -> str:
    """Reason why no image can be built here, with a hint; empty if one can, or is in the cache. Read-only."""
    try:
        wanted = recipe()
    except SiteError as error:
        return f"{error.message}; {error.hint}"
    if archive(cache, wanted).is_file():
        return ""
    if os.geteuid() != 0:
        return f"building an image needs root; {OTHERWISE}"
    if program("debootstrap") is None:
        return f"building an image needs the program debootstrap (apt-get install debootstrap); or {OTHERWISE}"
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
                await debian.discard(stale)
            folder = Path(tempfile.mkdtemp(prefix="build-", dir=path.parent))
            try:
                await debian.bootstrap(wanted, folder / "root", say, OTHERWISE)
                say("packing the image")
                argv = ["tar", "--create", "--numeric-owner", "--one-file-system", "--directory", str(folder / "root")]
                await run(None, [*argv, "--file", str(folder / "image.tar"), "."], timeout_s=PACK_TIMEOUT_S)
                (folder / "image.tar").rename(path)
            except CommandFailed as error:
                raise SiteError(f"the image could not be built: {error.message}", OTHERWISE) from error
            finally:
                await debian.discard(folder)
            say(f"image {name_of(wanted)} is in {path}")
    return wanted, path


async def ensure(daemon: Daemon, identity: str, named: str, cache: Path, say: Say) -> str:
    """Name of an image that a daemon has: the user's, pulled if need be, or our own. Raises SiteError."""
    wanted = None if named else recipe()
    name = name_of(wanted) if wanted is not None else named
    if await _has(daemon, identity, name):
        return name
    if wanted is None:
        await _pull(daemon, identity, named, say)
        return name
    wanted, path = await build(cache, say)
    try:
        say(f"importing {name}")
        change = f"LABEL steelyard.recipe={wanted.key}"
        await ask(daemon, identity, "import", "--change", change, str(path), name, timeout_s=IMPORT_TIMEOUT_S)
    except CommandFailed as error:
        raise SiteError(f"the image {name} could not be imported: {error.message}", OTHERWISE) from error
    return name


async def _pull(daemon: Daemon, identity: str, name: str, say: Say) -> None:
    """Have a daemon pull an image. Raises LastingSiteError: the client has already retried."""
    say(f"pulling {name}")
    try:
        await ask(daemon, identity, "pull", "--quiet", name, timeout_s=PULL_TIMEOUT_S)
    except CommandFailed as error:
        tags = await ask(daemon, identity, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", check=False)
        raise LastingSiteError(*not_pulled(name, error, tags.splitlines(), own=daemon.own)) from error


def not_pulled(name: str, error: CommandFailed, here: Sequence[str], *, own: bool) -> tuple[str, str]:
    """Message and hint for an image that a daemon neither has nor could pull. `here`: names of the images that it has;
    `own`: it is our own daemon. Pure."""
    answer = " ".join(error.stderr_tail.split()) or error.message
    unreached = any(words in answer.lower() for words in UNREACHED)
    absent = not unreached and any(words in answer.lower() for words in ABSENT)
    if error.exit_code is None:
        why = f"`docker pull {name}` did not end within {PULL_TIMEOUT_S:g} s"
    elif unreached:
        why = f"its registry could not be reached: `docker pull {name}` failed: {answer}"
    elif absent:
        why = f"its registry has no public image of that name: `docker pull {name}` failed: {answer}"
    else:
        why = f"it could not be pulled: `docker pull {name}` failed: {answer}"
    named = [tag for tag in here if not tag.startswith(REPOSITORY) and "<none>" not in tag][:MOST_NAMED]
    hints = [
        "check its name" if absent else "check this machine's network and Docker's proxy",
        "`docker save` it where it is and `docker load` it " + ("in a Docker that runs here" if own else "here"),
        'let Steelyard build its own (site.image = "", `steelyard setup docker`)',
        *([f"name an image that is present ({', '.join(named)})"] if named else []),
    ]
    return f"the image {name} is not here, and {why}", "; or ".join(hints)


def is_here(daemon: Daemon, named: str) -> bool:
    """Whether a daemon has an image, the user's or, without a name, our own. Read-only. Raises SiteError where there is
    none of our own."""
    return shows(daemon, "image", "inspect", "--format", "{{.Id}}", named or name_of(recipe()))


async def _has(daemon: Daemon, identity: str, name: str) -> bool:
    return bool(await ask(daemon, identity, "image", "inspect", "--format", "{{.Id}}", name, check=False))
