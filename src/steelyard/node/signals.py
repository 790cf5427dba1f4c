"""Signals that ask a program to end: heard by the event loop, or as KeyboardInterrupt where there is none."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, and the end of the terminal."""


@contextmanager
def heard(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """While inside, these signals call these functions in the running event loop; afterwards they do what is usual."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """While inside, a signal that asks to end cancels the task that entered, so that everything is undone; then it ends
    as KeyboardInterrupt."""
    task = asyncio.current_task()
    signalled = asyncio.Event()

    def cancel() -> None:
        # Once is enough: a second one must not cut the clean-up short.
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
    """Without an event loop: every signal that asks to end ends as ctrl-C does; a second one while things are put away
    changes nothing."""

    def end(number: int, frame: FrameType | None) -> None:
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    # Under nohup the end of the terminal is none of the program's.
    wanted = [one for one in ENDING if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, end) for one in wanted}
    try:
        yield
    finally:
        if all(signal.getsignal(one) is end for one in wanted):
            for ending, handler in before.items():
                signal.signal(ending, handler)
