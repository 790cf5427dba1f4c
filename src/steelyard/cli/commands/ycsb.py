"""`steelyard ycsb`: YCSB's command line, unchanged."""

from __future__ import annotations

import asyncio
import sys

import typer

from steelyard.dropin.ycsb import command, command_run

HELP = ("--help", "-h", "-help")


def ycsb(context: typer.Context) -> int:
    """Carry out a command line of YCSB's; returns the exit code. Raises StudyError for what we do not have."""
    if not context.args or any(word in HELP for word in context.args):
        print(command.USAGE, end="")
        return 0
    return asyncio.run(command_run.carry_out(command.parse(context.args), sys.stdout, sys.stderr))
