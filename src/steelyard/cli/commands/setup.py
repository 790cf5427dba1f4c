"""`steelyard setup NAME`: fetch what a system or a foreign engine needs, or name the command that installs it."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress as Moving
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from steelyard.cli.terminal.output import complain, message_console, say
from steelyard.engine.base import Fetched
from steelyard.model.errors import CommandFailed, SteelyardError, StudyError
from steelyard.node.command import run
from steelyard.node.fetch import Progress
from steelyard.node.folders import cache_folder
from steelyard.plugins import find
from steelyard.plugins.parts import NO_SETTINGS, default_plug_in
from steelyard.site.base import Prepares
from steelyard.tomlfile.problems import from_validation

EXAMPLES = (
    ("steelyard setup cassandra", "Fetch Java and Cassandra."),
    ("steelyard setup cassandra --version 3.9", "Fetch another release, and the Java that it needs."),
    ("steelyard setup latte", "Fetch another load generator."),
)
EXIT_DONE, EXIT_STUDY, EXIT_LABORATORY = 0, 2, 3
INSTALL_TIMEOUT_S = 900.0
SILENT_S = 15.0
"""Progress is a line after so long a silence where no line can move."""
KINDS = {"system": "systems", "site": "sites", "engine": "load generators"}
"""Seams whose plug-ins `setup` prepares."""


def _is_one(seam: str, name: str) -> bool:
    """Whether there is something to prepare."""
    try:
        return seam == "system" or isinstance(default_plug_in(seam, name), Prepares if seam == "site" else Fetched)
    except ValidationError:
        return False  # it has settings without a default


def _known(incomplete: str) -> list[str]:
    """Names that begin so, by seam."""
    return [name for seam in KINDS for name in find.names(seam) if name.startswith(incomplete) and _is_one(seam, name)]


class _Lines(logging.Handler):
    """Messages of a plug-in while it prepares: lines of the console, below them at a terminal a line that moves."""

    def __init__(self, console: Console, moving: Moving) -> None:
        super().__init__(logging.INFO)
        self._console, self._moving, self._task = console, moving, moving.add_task("")
        self._spoke_s = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line, or move."""
        text, now_s = record.getMessage(), record.created
        self._moving.update(self._task, description=text)
        silent = self._moving.disable and now_s - self._spoke_s >= SILENT_S
        if silent or not isinstance(record.msg, Progress):
            self._spoke_s = now_s
            _say(self._console, "·", text)


def setup(
    system: Annotated[
        str, typer.Argument(metavar="NAME", help="A system, site or load generator.", autocompletion=_known)
    ] = "cassandra",
    version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Of a system with a setting `version`: this release.")
    ] = None,
) -> int:
    """Prepare a system or a site with its default settings, or a foreign engine. As root on Debian or Ubuntu, what is
    missing is installed; otherwise the command is named. Returns 0, 2 if there is nothing of that name, 3 if something
    is missing."""
    return asyncio.run(_set_up(system, {} if version is None else {"version": version}, message_console()))


async def _set_up(name: str, settings: Mapping[str, Any], console: Console) -> int:
    begun = time.monotonic()
    try:
        seam, module, plug_in = _plug_in(name, settings)
    except StudyError as error:
        complain(console, error)
        return EXIT_STUDY
    try:
        with _spoken(f"steelyard.{seam}.{name.replace('-', '_')}", console):
            await _install(module, settings, console)
            await plug_in.prepare()
    except SteelyardError as error:
        complain(console, error)
        return EXIT_LABORATORY
    took_s = time.monotonic() - begun
    what = f"{plug_in.name} {plug_in.version}" if hasattr(plug_in, "version") else f"site {plug_in.name}"
    _say(console, "✓", f"{what} is ready in {cache_folder()} ({took_s:.1f} s)")
    return EXIT_DONE


def _plug_in(name: str, settings: Mapping[str, Any] = NO_SETTINGS) -> tuple[str, ModuleType, Any]:
    """Seam, module and plug-in of a system, or of a site or an engine that can be got ready. Raises StudyError."""
    seams = ["system"] if find.is_path(name) else [seam for seam in KINDS if name in find.names(seam)]
    for seam in (one for one in seams if find.is_path(name) or _is_one(one, name)):
        module = find.find(seam, name)
        if settings and seam != "system":
            raise StudyError(f"--version: {name} is no system", "remove it")
        try:
            return seam, module, default_plug_in(seam, name, **settings)
        except ValidationError as error:
            raise from_validation(error, "system", module.Settings)[0] from None
    known = _known("")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    lines = [f"did you mean {near[0]!r}?"] if near else []
    for seam, kind in KINDS.items():
        lines += [f"{kind}: {', '.join(one for one in find.names(seam) if one in known)}"]
    raise StudyError(f"nothing to set up is named {name!r}", "\n".join(lines))


async def _install(module: ModuleType, settings: Mapping[str, Any], console: Console) -> None:
    """Missing Debian packages by the module, if installation is allowed. A module may name none."""
    if (of_module := getattr(module, "missing_packages", None)) is None:
        return
    chosen = (module.Settings(**settings),) if settings and inspect.signature(of_module).parameters else ()
    missing: Sequence[str] = await of_module(*chosen)
    if not missing or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    argv = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    _say(console, "·", f"installing what is missing: {' '.join(argv)}")
    try:
        await run(None, argv, timeout_s=INSTALL_TIMEOUT_S)
    except CommandFailed:
        # Fresh machines and containers have no package lists.
        _say(console, "·", "try again after: apt-get update")
        await run(None, ["apt-get", "update"], timeout_s=INSTALL_TIMEOUT_S)
        await run(None, argv, timeout_s=INSTALL_TIMEOUT_S)


@contextmanager
def _spoken(logger_name: str, console: Console) -> Iterator[None]:
    logger = logging.getLogger(logger_name)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    moving = Moving(*columns, console=console, transient=True, disable=not console.is_terminal)
    handler, level = _Lines(console, moving), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with moving:
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _say(console: Console, mark: str, text: str) -> None:
    style = {"✓": "green", "✗": "red"}.get(mark, "dim")
    say(console, Text(f"{mark} ", style=style).append(text, style="default" if mark != "·" else "dim"))
