"""Handling of termination signals: in the event loop, or as KeyboardInterrupt without one.

A signal that was ignored when the process began stays ignored, as POSIX asks of programs: SIGHUP under nohup, SIGINT in
the background of a script. SIGTERM always works. asyncio is imported where it is used, so that the command line can
handle signals before it imports anything slow.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, kill, and the end of the terminal."""


def wanted() -> tuple[signal.Signals, ...]:
    """The termination signals that are not ignored."""
    return tuple(number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN)


@contextmanager
def handled(
    handler: Callable[[int, FrameType | None], None], numbers: Collection[signal.Signals] = ENDING
) -> Iterator[None]:
    """Within the block, those of these signals that are not ignored call `handler` at once."""
    before = {number: signal.signal(number, handler) for number in wanted() if number in numbers}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP do what ctrl-C does just then: in an event loop they cancel its task,
    otherwise they raise KeyboardInterrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(ctrl_c):  # ignored, or left to the kernel
            raise KeyboardInterrupt
        ctrl_c(signal.SIGINT, frame)

    with handled(interrupt, (signal.SIGTERM, signal.SIGHUP)):
        yield


@contextmanager
def heard(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Within the block, these signals, but for ignored ones, call these functions in the running event loop; then what
    applied before does."""
    import asyncio

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in handlers if number in wanted()}
    for number in before:
        loop.add_signal_handler(number, handlers[number])
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
    import asyncio

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

    before = {number: signal.signal(number, end) for number in wanted()}
    try:
        yield
    finally:
        if all(signal.getsignal(number) is end for number in before):
            for ending, handler in before.items():
                signal.signal(ending, handler)
