"""Commands of `steelyard`, forked from a process that has imported it: an import takes 2 s of processor."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO, Any, Final

PRELOADED: Final = tuple(f"steelyard.cli.commands.{name}" for name in ("run", "report", "status", "verify"))


def _command(words: Sequence[str], environment: Mapping[str, str], folder: Path, out: str, err: str) -> None:
    """The child: as if the shell had started the command with these variables, in this folder."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["steelyard", *words]
    from steelyard.__main__ import main

    main()


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *PRELOADED])
    return context


def run(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run `steelyard WORDS` to its end; like `subprocess.run` with the output as text."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        child = _context().Process(target=_command, args=(words, dict(environment), folder, out.name, err.name))
        child.start()
        child.join(timeout_s)
        if child.is_alive():
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(["steelyard", *words], timeout_s, _text(out), _text(err))
        assert child.exitcode is not None
        return subprocess.CompletedProcess(["steelyard", *words], child.exitcode, _text(out), _text(err))


def _text(file: IO[Any]) -> str:
    file.seek(0)
    return str(file.read().decode())
