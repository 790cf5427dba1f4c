"""Handling of termination signals: in the event loop, or as KeyboardInterrupt without one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, kill, and the end of the terminal."""


@contextmanager
def heard(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Within the block, these signals call these functions in the running event loop; then what applied before does,
    such as the ignored end of the terminal under nohup."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, handler_before in before.items():
            loop.remove_signal_handler(number)
            if handler_before is not None:  # None: set by other than Python
                signal.signal(number, handler_before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, a termination signal cancels the current task, so that everything is undone, and then raises
    KeyboardInterrupt."""
    task = asyncio.current_task()
    signalled = asyncio.Event()

    def cancel() -> None:
        # Only once: a second signal must not interrupt the clean-up.
        if not signalled.is_set() and task is not None:
            signalled.set()
            task.cancel()

    with heard(dict.fromkeys(ENDING, cancel)):
        try:
            yield
        except asyncio.CancelledError:
            if signalled.is_set():
                raise KeyboardInterrupt from None
            raise


@contextmanager
def as_keyboard_interrupt() -> Iterator[None]:
    """Without an event loop: every termination signal acts like ctrl-C; a second one during clean-up is ignored."""

    def end(number: int, frame: FrameType | None) -> None:
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    # Under nohup the program ignores the end of the terminal.
    wanted = [one for one in ENDING if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, end) for one in wanted}
    try:
        yield
    finally:
        if all(signal.getsignal(one) is end for one in wanted):
            for ending, handler in before.items():
                signal.signal(ending, handler)
