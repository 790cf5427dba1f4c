"""Systems of Debian's packages: server and client of this machine, of a node, or brought there with their libraries."""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.model.finding import Finding, judged
from steelyard.node import fetch, files
from steelyard.node.base import Node, with_port
from steelyard.node.command import architecture, run
from steelyard.node.tasks import together
from steelyard.system.one_server import OneServer

ASK_TIMEOUT_S = 10.0
CURL: Final = ("-q", "--globoff", "--noproxy", "*", "--silent", "--show-error", "--fail")
"""Options of a request by `curl`, without the user's own settings."""
LOOK_TIMEOUT_S: Final = 30.0
RUN: Final = '#!/bin/sh\nexec "${{0%/*}}/{loader}" --library-path "${{0%/*}}" "$0.bin" "$@"\n'
"""Program that runs another with the libraries next to it."""
LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
LEFT = shutil.ignore_patterns("bitcode", "llvmjit*")
"""Files of folders that are not brought: they need a compiler of some 100 MB, without which the server does."""


@dataclass(frozen=True)
class Programs:
    """Server and client as a node finds them, and the server's version."""

    version: str
    server: str
    client: str


@dataclass(frozen=True)
class Packaged:
    """Server and client of one system."""

    system: str
    packages: tuple[str, ...]
    programs: tuple[str, str]
    """Names or paths of server and client."""
    version: re.Pattern[str]
    """The server's version in what it prints."""
    asks: tuple[str, str] = ("--version", "--version")
    """Word by which each program prints its version."""
    loads: tuple[str, ...] = ()
    """Further files that the server loads; where it was brought, they lie next to it."""
    more: tuple[str, ...] = ()
    """Further programs, in the folder of the server."""
    folders: tuple[str, ...] = ()
    """Folders that the server finds from its own place. If there are any, it is brought with its path, as they are."""

    @property
    def names(self) -> str:
        """Both programs in words."""
        return " and ".join(self.programs)

    @property
    def hint(self) -> str:
        """The commands that install both."""
        return f"steelyard setup {self.system}, or as root: apt-get install {' '.join(self.packages)}"

    async def find(self, node: Node | None = None) -> Programs | None:
        """The programs of a node, or of this machine."""
        asked = zip(self.programs, self.asks, strict=True)
        try:
            server, _ = [await run(node, words, timeout_s=LOOK_TIMEOUT_S, watch=True) for words in asked]
        except CommandFailed:
            return None
        version = self.version.search((server.stdout + server.stderr).decode(errors="replace"))
        return Programs(version[1] if version else "unknown", *self.programs)

    async def of_this_machine(self) -> Programs:
        """The programs of this machine. Raises SystemFault with the command that installs them."""
        if (programs := await self.find()) is None:
            raise SystemFault(f"{self.names} not found", self.hint, system=self.system)
        return programs

    async def missing(self) -> Sequence[str]:
        """Debian packages that this machine lacks."""
        return () if await self.find() else self.packages

    async def bring(self, node: Node, cache: Path) -> Programs:
        """This machine's programs on a node of the same architecture that has none, with all of their libraries, by way
        of the cache. Raises SystemFault."""
        mine = await self.of_this_machine()
        here, there = [await architecture(where) for where in (None, node)]
        if here != there:
            what = f"{node.name}: {self.names} not found; this machine's are for {here}, the node is {there}"
            hint = f"on the node, as root: {self.hint.rpartition(': ')[2]}"
            raise SystemFault(what, hint, node=node.name, system=self.system)
        parts = [await _parts(name) for name in (*self.programs, *self.more)]
        # By all contents: packages of one version may differ, and so may their libraries.
        everything = {*self.loads, *self.folders, *itertools.chain(*parts)}
        contents = sorted(files.checksum(Path(name)) for name in everything)
        digest = hashlib.sha256("".join(contents).encode()).hexdigest()[:12]
        bundle = cache / f"{self.system}-{mine.version}-{here}-{digest}"
        async with fetch.locked(cache, SystemFault):
            if not bundle.is_dir():
                with tempfile.TemporaryDirectory(prefix=f"{self.system}.tmp-", dir=cache) as temporary:
                    whole = Path(temporary) / "bundle"
                    _gather(parts, self.loads, whole / self._inside)
                    for folder in self.folders:
                        shutil.copytree(folder, whole / folder[1:], ignore=LEFT, ignore_dangling_symlinks=True)
                    whole.rename(bundle)
        place = await files.bring(node, bundle) / self._inside
        return Programs(mine.version, *(str(place / Path(name).name) for name in self.programs))

    @property
    def _inside(self) -> Path:
        """Folder of the programs in what is brought, relative to its root."""
        return Path(self.programs[0]).parent.relative_to("/") if self.folders else Path()


class PackagedServer(OneServer):
    """System of one server for each node that comes from Debian's packages. Settings are names and texts, as the server
    lists them; `version` is one of them."""

    packaged: Packaged
    offers: tuple[str, str]
    """The ways to the port for clients, and to the client that asks there."""
    departures: ClassVar[Mapping[str, str]]
    """Differences between the way we start the server and its package's settings."""

    def __init__(self, port: int, memory_mb: int, cache_folder: Path) -> None:
        super().__init__(port)
        self.version = "unknown"
        self.memory_mb_per_node = memory_mb
        self._cache_folder = cache_folder
        self._programs: dict[tuple[str, Path], Programs] = {}

    @abstractmethod
    def asked(self, node: Node) -> Mapping[str, str]:
        """Settings with which a node's server is started. Pure."""

    @abstractmethod
    async def in_force(self, node: Node) -> Mapping[str, str]:
        """Settings of the running server. Raises CommandFailed."""

    async def prepare(self) -> None:
        """Find the programs on this machine. Raises SystemFault if they are not there."""
        self.version = (await self.packaged.of_this_machine()).version

    async def findings(self) -> Sequence[Finding]:
        """The programs on this machine."""
        mine = await self.packaged.find()
        state = "no server and client" if mine is None else mine.version
        return [judged(self.name, state, mine is not None, self.packaged.hint)]

    async def provide(self, nodes: Sequence[Node]) -> None:
        """Find the programs on nodes with their own, or bring this machine's."""
        programs = await together(self.programs(node) for node in nodes)
        self.version = programs[0].version

    async def programs(self, node: Node) -> Programs:
        """The programs as a node sees them."""
        programs = self._programs.get((node.name, node.folder))
        if programs is None:
            programs = await self.packaged.find(node) or await self.packaged.bring(node, self._cache_folder)
            self._programs[node.name, node.folder] = programs
        return programs

    async def facts(self, node: Node) -> Mapping[str, str]:
        """Version, every setting as the node lists it, and how our start differs."""
        settings = dict(await self.in_force(node))
        return {
            "version": settings.pop("version"),
            **{f"setting {name}": value for name, value in settings.items()},
            **{f"departs: {what}": how for what, how in self.departures.items()},
        }

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Version and settings in force that differ from those requested."""
        force, asked = await self.in_force(node), {**self.asked(node), "version": self.version}
        return {
            name: (value, force.get(name, "not listed")) for name, value in asked.items() if force.get(name) != value
        }

    def ways(self, node: Node) -> Mapping[str, str]:
        """The port for clients, and the program that asks there."""
        port, client = self.offers
        programs = self._programs.get((node.name, node.folder))
        known = {} if programs is None else {client: programs.client}
        return {port: with_port(node.address, self._port), **known}

    async def ask(self, node: Node, *words: str, timeout_s: float = ASK_TIMEOUT_S) -> str:
        """Answer to the client, which runs on the node, outside its limits. Raises CommandFailed."""
        argv = [(await self.programs(node)).client, *words]
        return (await run(node, argv, timeout_s=timeout_s, watch=True)).stdout.decode(errors="replace")

    def notes(self) -> Sequence[str]:
        """A note if the programs are not on this machine."""
        missing = [name for name in self.packaged.programs if shutil.which(name) is None]
        return [f"{' and '.join(missing)} not found on this machine: {self.packaged.hint}"] if missing else []


def _gather(parts: Sequence[Sequence[str]], more: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in (*more, *(library for _, *libraries in parts for library in libraries)):
        shutil.copy(file, folder)
    (loader,) = folder.glob("ld-*")
    for program, *_ in parts:
        script = folder / Path(program).name
        shutil.copy(program, f"{script}.bin")
        script.write_text(RUN.format(loader=loader.name), encoding="utf-8")
        script.chmod(0o755)


async def _parts(name: str) -> Sequence[str]:
    """The files of a program: itself, its libraries, and the program that loads them."""
    program = shutil.which(name) or name
    try:
        done = await run(None, ["ldd", program], timeout_s=LOOK_TIMEOUT_S)
    except CommandFailed as error:
        raise SystemFault(f"{program}: its libraries are not known: {error.message}", system=name) from error
    return [program, *LIBRARY.findall(done.stdout.decode())]
