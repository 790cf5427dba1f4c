"""`steelyard stress ...`: cassandra-stress's command lines, unchanged."""

from __future__ import annotations

import os
import sys

import typer

from steelyard.cli.terminal.output import complain, message_console
from steelyard.dropin.stress.run.command import EXIT_FAILED, EXIT_INTERRUPTED, conduct
from steelyard.model.errors import SteelyardError


def stress(context: typer.Context) -> int:
    """Run a command line. Exit codes are those of cassandra-stress: 0, 1 when it failed or was refused; 130 after
    ctrl-C."""
    console = message_console()
    try:
        return conduct(context.args)
    except SteelyardError as error:
        complain(console, error)
        return EXIT_FAILED
    except BrokenPipeError:
        # The reader of the lines has gone; the rest of the buffer must not raise the same error at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        return EXIT_INTERRUPTED
