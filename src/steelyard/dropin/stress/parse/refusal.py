"""Error for an unsupported or wrong command line: an option is refused by name, never silently ignored."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from steelyard.model.errors import SteelyardError, StudyError
from steelyard.tomlfile import parse

SECRET = re.compile(r"((?:pa?s+|pw)[\w-]*=)\S+", re.IGNORECASE)
"""A password in a word of the command line, also where its name is misspelt."""
NEAR = 0.7
"""Share of letters in common from which a word is taken for a misspelt one."""


def without_secrets(words: str) -> str:
    """Words of a command line without the passwords."""
    return SECRET.sub(r"\1*suppressed*", words)


class Refused(SteelyardError):
    """A word of the command line is wrong or not supported. `option`: its location,
    `read`: what was read, `allowed`: what is allowed. A password is not shown."""

    def __init__(self, option: str, read: str, why: str, allowed: str = "") -> None:
        read = without_secrets(read)
        super().__init__(f"{option}: read {read!r}: {why}", f"allowed: {allowed}" if allowed else "")
        self.option = option
        self.read = read
        self.allowed = allowed


def unknown(option: str, read: str, why: str, known: Iterable[str]) -> Refused:
    """The error for a name that is none of `known`; the nearest of them comes first in its hint."""
    names = list(known)
    name = read.partition("=")[0].partition("(")[0].partition(" ")[0].lower()
    by_bare = {one.rstrip("=<>?()").lower(): one for one in reversed(names)}
    near = difflib.get_close_matches(name, by_bare, n=1, cutoff=NEAR)
    refused = Refused(option, read, why, ", ".join(names))
    if near:
        refused.hint = f"did you mean {by_bare[near[0]]!r}? {refused.hint}"
    return refused


def text_of(option: str, path: Path, what: str) -> str:
    """The text of a file that an option names, without a byte order mark. Raises Refused. `what`: as `a YAML file`."""
    try:
        return parse.text_of(path, what)
    except StudyError as error:
        why = error.message.removeprefix(str(path)).lstrip(": ")
        raise Refused(option, str(path), f"line {why}" if error.line else why, what) from error
