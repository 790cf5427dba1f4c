"""Tokeniser of a command line: argv to sections with their words.

`write n=1 -rate threads=4` is the section `write` with the word `n=1`, and `-rate` with `threads=4`.

A command line that was written for a shell may arrive without one (from a file, from an argv list). So backslashes
before brackets, quotes around values and a final semicolon are removed as a shell would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.dropin.stress.parse.refusal import Refused

ESCAPED = re.compile(r"\\([(){}\[\]<>=,;~*?!&|$#'\"])")
"""Characters that need a backslash in a shell. Any other backslash is part of a value."""
QUOTED = re.compile(r"""^([^\s"'=(]*=)?(["'])(.*)\2$""")


def tidy(arguments: Sequence[str]) -> tuple[str, ...]:
    """The words that cassandra-stress would see: escapes and quotes undone, spaces around `, = ( )` closed up, a
    semicolon at the end of the command line dropped."""
    bare = (QUOTED.sub(r"\1\3", ESCAPED.sub(r"\1", argument)) for argument in arguments)
    text = " ".join(argument for argument in bare if argument.strip()).rstrip("; ")
    # cassandra-stress does the same two substitutions, so that `ratio( read = 1, write = 1 )` is one word.
    text = re.sub(r"\s+([,=()])", r"\1", text)
    text = re.sub(r"([,=(])\s+", r"\1", text)
    return tuple(text.split())


def sections(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Words by section. Raises Refused for a section that is named twice."""
    words = tidy(arguments)
    by_name: dict[str, list[str]] = {}
    name = ""
    for index, word in enumerate(words):
        if index == 0 or word.startswith("-"):
            name = word.lower()
            if name in by_name:
                raise Refused(name, word, "it is given more than once", "each command and option once")
            by_name[name] = []
        else:
            by_name[name].append(word)
    return {name: tuple(values) for name, values in by_name.items()}
