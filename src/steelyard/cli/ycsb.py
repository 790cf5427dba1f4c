"""`steelyard ycsb`: YCSB's command line, unchanged."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from steelyard.dropin.ycsb import command, session

HELP = ("--help", "-h", "-help")


def ycsb(arguments: Sequence[str]) -> int:
    """Carry out a command line of YCSB's; returns the exit code. Raises StudyError for what we do not have."""
    if not arguments or any(word in HELP for word in arguments):
        print(command.USAGE, end="")
        return 0
    return asyncio.run(session.carry_out(command.parse(arguments), sys.stdout, sys.stderr))
