"""Installation of latte: built once by cargo from the package registry's sources, with its locked versions."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.model.errors import EngineError
from steelyard.node import fetch
from steelyard.node.fetch import Say

VERSION = "0.29.0"
BUILD_TIMEOUT_S = 3600.0
"""About 400 crates, optimised: minutes on a fast machine."""


def program(cache_folder: Path) -> Path:
    """Path of the installed program."""
    return cache_folder / "latte" / "bin" / "latte"


async def ensure(cache_folder: Path, say: Say) -> Path:
    """The program, built if necessary. Raises EngineError that names what is missing."""
    path = program(cache_folder)
    if path.is_file():
        return path
    cargo = shutil.which("cargo")
    if cargo is None:
        raise EngineError(f"no cargo to build latte {VERSION} with", "install Rust, as `make setup` needs it too")
    root = path.parent.parent
    async with fetch.locked(root, EngineError):
        # Another process may have built it while this one waited.
        if not path.is_file():
            say(f"building latte {VERSION} with {cargo}: about 400 crates")
            argv = [cargo, "install", "latte-cli", "--version", VERSION, "--locked", "--root", str(root)]
            code, tail = await fetch.followed(argv, say, {}, mark="Compiling", unit="crates", timeout_s=BUILD_TIMEOUT_S)
            if code != 0:
                errors = [line for line in tail if line.lstrip().startswith("error")] or tail
                raise EngineError(f"cargo could not build latte {VERSION}: {' | '.join(errors[:3])}")
    return path
