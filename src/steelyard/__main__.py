"""Entry of the command line: termination signals are handled before anything slow is imported.

Until the command line is there nothing is held that would have to be released: a signal ends the process at once.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from steelyard.node.signals import ENDING, handled, like_ctrl_c

EXIT_INTERRUPTED = 130


def _leave(number: int, frame: FrameType | None) -> None:
    """End now, without an exception: one that is raised in the middle of an import can get lost there."""
    os.write(2, b"interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def main() -> None:
    """Run the command line, and exit with its code."""
    try:
        with like_ctrl_c():
            with handled(_leave):
                from steelyard.cli.main import main as command_line
            command_line()
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    finally:
        # All is done: the code that was decided is the one that is returned.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main()
