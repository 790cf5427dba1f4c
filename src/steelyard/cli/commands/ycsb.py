"""`steelyard ycsb`: YCSB's command line, unchanged."""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO, cast

import typer

from steelyard.dropin.ycsb import command, command_run
from steelyard.shown_text import Shown

HELP = ("--help", "-h", "-help")


def ycsb(context: typer.Context) -> int:
    """Run a YCSB command line; returns the exit code. Raises StudyError for anything unsupported."""
    if not context.args or any(word in HELP for word in context.args):
        print(command.USAGE, end="")
        return 0
    out, err = (cast(TextIO, Shown(stream)) for stream in (sys.stdout, sys.stderr))
    return asyncio.run(command_run.carry_out(command.parse(context.args), out, err))
