"""A page in the real browser, driven over Chromium's own debugging pipe: no library, no port."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ANSWER_S = 180.0
"""A limit for a machine that is very slow."""
RENUMBER = """
import fcntl, os, sys
high = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""The browser reads descriptor 3 and writes descriptor 4."""
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")


class Between(AssertionError):
    """One page has gone, and the next is not there yet."""


SHOWN = "location.href.split('?')[0] + ': ' + document.documentElement.textContent.slice(0, 2000)"


class Tab:
    """One tab. Messages end with a zero byte; answers have the id of what they answer."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest = to, back, b""
        self._last, self._session = 0, ""
        self.complaints: list[str] = []

    def open(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.call("Page.enable")
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command; gives its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "context" in str(answer.get("error", "")) or "navigated" in str(answer.get("error", "")):
                    raise Between(f"{method}: {answer['error']}")
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer.get("result", {}))
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(json.dumps(answer["params"]))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + ANSWER_S
        while b"\0" not in self._rest:
            assert select.select([self._back], [], [], max(0.0, end - time.monotonic()))[0], "no answer of the browser"
            found = os.read(self._back, 1 << 16)
            assert found, "the browser has gone"
            self._rest += found
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def value(self, expression: str) -> Any:
        """What an expression gives, awaited."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + ANSWER_S
        while not self._true(expression):
            assert time.monotonic() < end, f"never true: {expression}, of {self.value(SHOWN)}"
            time.sleep(0.05)

    def _true(self, expression: str) -> bool:
        try:
            return bool(self.value(expression))
        except Between:
            return False

    def key(self, name: str) -> None:
        """Press and release a key."""
        text = {"text": "\r"} if name == "Enter" else {"text": name} if len(name) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, **_CODES.get(name, {}), **text)

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at a place of the window, move to another, and let go."""
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=begin[0], y=begin[1], **held)
        for part in (0.5, 1.0):
            x, y = (first + part * (last - first) for first, last in zip(begin, end, strict=True))
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], button="left", clickCount=1)


_CODES: dict[str, dict[str, int]] = {
    name: {"windowsVirtualKeyCode": code}
    for name, code in (("Enter", 13), ("End", 35), ("Home", 36), ("ArrowLeft", 37), ("ArrowRight", 39), ("Escape", 27))
}


@contextmanager
def tab(chromium: str, url: str, profile: Path, *, size: str = "1200,1600") -> Iterator[Tab]:
    """A page in a browser of its own, which ends with the block."""
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    argv = [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *QUIET,
        f"--window-size={size}", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    renumbered = [sys.executable, "-c", RENUMBER, str(their_in), str(their_out), *argv]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(renumbered, pass_fds=(their_in, their_out), stdout=quiet, stderr=quiet)
    os.close(their_in)
    os.close(their_out)
    try:
        found = Tab(our_out, our_in)
        found.open(url)
        yield found
    finally:
        process.terminate()
        process.wait(30)
        os.close(our_out)
        os.close(our_in)
