"""Ctrl-C during a study: a question at a terminal, an immediate stop elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator

from steelyard.cli.progress_views import LiveView, PlainView
from steelyard.lab.session import Session
from steelyard.node import signals

KEYS_AT_ONCE = 64
ASK = "interrupt: [f]inish the trial, [s]top now, [g]o on?"


@contextlib.contextmanager
def interruptible(session: Session, view: LiveView | PlainView, *, ask: bool) -> Iterator[None]:
    """Within the block, termination signals stop the session; with `ask`, ctrl-C at a terminal asks first."""
    state = _Interrupt(session, view)
    ask = ask and _at_the_terminal()
    loop = asyncio.get_running_loop()
    keyboard = sys.stdin.fileno() if ask else -1
    before = termios.tcgetattr(keyboard) if ask else None

    def read() -> None:
        keys = os.read(keyboard, KEYS_AT_ONCE)
        if keys:
            state.answer(keys)
        else:
            loop.remove_reader(keyboard)

    stop = dict.fromkeys(signals.ENDING, state.stop)
    with signals.heard(stop | {signal.SIGINT: state.ask} if ask else stop):
        try:
            if ask:
                tty.setcbreak(keyboard)
                loop.add_reader(keyboard, read)
            yield
        finally:
            if before is not None:
                loop.remove_reader(keyboard)
                with contextlib.suppress(termios.error):
                    termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


class _Interrupt:
    """Meaning of ctrl-C; a second one always stops."""

    def __init__(self, session: Session, view: LiveView | PlainView) -> None:
        self._session = session
        self._view = view
        self.asking = False

    def stop(self) -> None:
        """Stop now: the trial in flight is lost, everything is released."""
        self._view.note = "stopping: releasing the nodes"
        self._session.stop()

    def ask(self) -> None:
        """First ctrl-C at a terminal."""
        if self.asking:
            self.stop()
            return
        self.asking = True
        self._view.note = ASK

    def answer(self, keys: bytes) -> None:
        """Keys that were pressed; only f, s and g mean something, and only when asked."""
        if not self.asking:
            return
        for key in keys.decode(errors="replace"):
            if key not in "fsg":
                continue
            self.asking = False
            self._view.note = ""
            if key == "s":
                self.stop()
            elif key == "f":
                self._view.note = "finishing the trial in flight"
                self._session.finish()
            return


def _at_the_terminal() -> bool:
    """Whether keys can be read: a terminal, and this process is not in its background."""
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
