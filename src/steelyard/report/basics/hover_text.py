"""Hover texts of a page: each text is stored once and marks refer to it by number.

A trial is a dot in five pictures, each drawn for two widths, so its text would be repeated ten times. Only the page's
script reads these texts, so they can be stored apart from the marks.
"""

from __future__ import annotations

import json

from markupsafe import Markup


class HoverTexts:
    """The hover texts of one page, collected while its pictures are written; a mark holds the number of its text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, from 0 in the order in which they come."""
        return self._numbers.setdefault(text, len(self._numbers))

    def as_json(self) -> Markup:
        """All texts by number, as JSON that cannot end its script element."""
        texts = json.dumps(list(self._numbers), ensure_ascii=False, separators=(",", ":"))
        return Markup(texts.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
