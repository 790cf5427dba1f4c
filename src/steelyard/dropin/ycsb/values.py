"""Typed reading of property values; an error names the property and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from steelyard.model.errors import StudyError

Read = TypeVar("Read", int, float)
MOST = 2**40


class Values:
    """Typed reader of properties; blanks around a value are ignored."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def __contains__(self, name: str) -> bool:
        return name in self._properties

    def text(self, name: str, default: str = "") -> str:
        """The text as written."""
        return self._properties.get(name, default).strip()

    def integer(self, name: str, default: int, least: int = 0, most: int = MOST) -> int:
        """An integer within bounds."""
        return self._number(name, default, int, least, most, "a whole number")

    def number(self, name: str, default: float, least: float = 0.0, most: float = math.inf) -> float:
        """A number within bounds."""
        return self._number(name, default, float, least, most, "a number")

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`, case-insensitive. Java reads any other word as false; here it is an error."""
        read = self.text(name, str(default)).lower()
        if read not in ("true", "false"):
            raise wrong(name, self.text(name), ("true", "false"))
        return read == "true"

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """One of several words."""
        read = self.text(name, default)
        if read not in allowed:
            raise wrong(name, read, allowed)
        return read

    def listed(self, name: str, default: str = "") -> tuple[str, ...]:
        """Comma-separated words, without empty ones."""
        return tuple(word.strip() for word in self.text(name, default).split(",") if word.strip())

    def _number(
        self, name: str, default: Read, kind: Callable[[str], Read], least: float, most: float, what: str
    ) -> Read:
        if name not in self._properties:
            return default
        text = self.text(name)
        read: Read | None
        try:
            read = kind(text)
        except ValueError:
            read = None
        if read is None or not least <= read <= most:
            bounds = f"{what} from {least:g}" + ("" if most in (math.inf, MOST) else f" to {most:g}")
            raise wrong(name, text, (bounds,))
        return read


def wrong(name: str, read: str, allowed: Sequence[str], why: str = "") -> StudyError:
    """The error for an unsupported property value."""
    reason = f": {why}" if why else ""
    message, hint = f"the property {name}: read {read!r}{reason}", f"allowed: {', '.join(allowed)}"
    return StudyError(message, hint, key=name, read=read, allowed=allowed)
