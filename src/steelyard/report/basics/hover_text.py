"""What is said under the pointer, each text once: the same trial is a dot in five pictures, each drawn for two widths.

Only the page's script reads these texts, so they may stand apart from the marks.
"""

from __future__ import annotations

import json

from markupsafe import Markup


class HoverTexts:
    """The texts of one page, gathered while its pictures are written; a mark carries the number of its text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, from 0 in the order in which they come."""
        return self._numbers.setdefault(text, len(self._numbers))

    def as_json(self) -> Markup:
        """All texts by number, as JSON that cannot end its script element."""
        texts = json.dumps(list(self._numbers), ensure_ascii=False, separators=(",", ":"))
        return Markup(texts.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
