"""Generated parts of pages that are otherwise written by hand. A part stands between two comments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

COMMAND: Final = "python -m tools.docs --write"
BEGIN: Final = "<!-- {name}: made by `" + COMMAND + "`, not to be edited -->\n"
END: Final = "<!-- end of {name} -->\n"


def with_parts(page: str, parts: Mapping[str, Callable[[], Iterator[str]]]) -> str:
    """The page with these parts up to date. Raises ValueError if the comments around one are missing."""
    for name, lines in parts.items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, opened, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise ValueError(f"the page has no part {begin.strip()} ... {end.strip()}")
        body = "\n".join(lines()).rstrip("\n")
        page = f"{before}{begin}\n{body}\n\n{end}{after}"
    return page


def cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(text.split("\n")).replace("|", "\\|")
