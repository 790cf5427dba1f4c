"""Error for an unsupported or wrong command line: an option is refused by name, never silently ignored."""

from __future__ import annotations

import re

from steelyard.model.errors import SteelyardError

SECRET = re.compile(r"(password=)\S+", re.IGNORECASE)


class Refused(SteelyardError):
    """A word of the command line is wrong or not supported. `option`: its location,
    `read`: what was read, `allowed`: what is allowed."""

    def __init__(self, option: str, read: str, why: str, allowed: str = "") -> None:
        read = SECRET.sub(r"\1*suppressed*", read)
        super().__init__(f"{option}: read {read!r}: {why}", f"allowed: {allowed}" if allowed else "")
        self.option = option
        self.read = read
        self.allowed = allowed
