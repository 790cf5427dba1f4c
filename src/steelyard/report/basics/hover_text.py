"""What is said under the pointer, each text once: the same trial is a dot in five pictures, each drawn for two widths.

Only the page's script reads these texts, so they may stand apart from the marks.
"""

from __future__ import annotations

import html
import json
import re
from typing import Final

from markupsafe import Markup

_TIP: Final = re.compile(r' data-tip="([^"]*)"')
PLACE: Final = '<script type="application/json" id="tips">[]</script>'
"""Where the template leaves room for them."""


def interned(page: str) -> str:
    """The page with every `data-tip` as the number of a text in the element `tips`."""
    places: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f' data-tip="{places.setdefault(match.group(1), len(places))}"'

    smaller = _TIP.sub(number, page)
    texts = json.dumps([html.unescape(text) for text in places], ensure_ascii=False, separators=(",", ":"))
    return smaller.replace(PLACE, PLACE.replace("[]", _safe(texts)), 1)


def _safe(texts: str) -> Markup:
    """JSON that cannot end its script element."""
    return Markup(texts.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
