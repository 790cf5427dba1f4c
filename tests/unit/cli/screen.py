"""What a command prints, on a terminal of a given width."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch


@dataclass(frozen=True)
class Printed:
    """The exit code, and what went to standard output and to standard error."""

    code: int
    out: str
    err: str


def printed(command: Callable[[], int], width: int = 200) -> Printed:
    """Carry out a command and catch what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {"COLUMNS": str(width)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = command()
    return Printed(code, out.getvalue(), err.getvalue())
