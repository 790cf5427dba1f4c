"""`steelyard stress ...`: cassandra-stress's command lines, unchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich.console import Console

from steelyard.dropin.stress.conduct import EXIT_FAILED, EXIT_INTERRUPTED, conduct
from steelyard.model.errors import SteelyardError


def stress(arguments: Sequence[str], *, console: Console) -> int:
    """Carry out a command line. Exit codes are those of cassandra-stress: 0, 1 when it failed or was refused; 130 after
    ctrl-C."""
    try:
        return conduct(arguments)
    except SteelyardError as error:
        console.print(f"steelyard stress: {error.message}", style="red", highlight=False, markup=False, soft_wrap=True)
        if error.hint:
            console.print(f"  {error.hint}", highlight=False, markup=False, soft_wrap=True)
        return EXIT_FAILED
    except BrokenPipeError:
        # Whoever read the lines has gone; what is still in the buffer must not raise the same at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        return EXIT_INTERRUPTED
