"""The tables inside a page, packed: deflated and in base64, which a browser unpacks by itself when one is downloaded.

Plain, the tables of 1,000 trials would take half of the room that a page has. `report --json` prints them as they are.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

LEVEL: Final = 9
MOST_BYTES: Final = 500_000_000
"""What unpacked tables may take: a page that says more is no report."""


def pack(tables: Mapping[str, Any]) -> str:
    """Tables as the text that the page carries."""
    text = json.dumps(tables, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8"), LEVEL)).decode("ascii")


def unpack(text: str) -> Any:
    """What `pack` packed. Plain JSON is read too, as pages of before had it. Raises ValueError for anything else."""
    if text.lstrip().startswith("{"):
        return json.loads(text)
    try:
        deflated = base64.b64decode(text, validate=True)
        inflater = zlib.decompressobj()
        inflated = inflater.decompress(deflated, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"the tables of the page cannot be unpacked: {error}") from error
    if not inflater.eof:
        raise ValueError("the tables of the page are cut short, or too large")
    return json.loads(inflated)
