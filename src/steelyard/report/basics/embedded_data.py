"""Compression of the tables that are embedded in a page: deflate, then base64.

The browser unpacks them when a table is downloaded. Uncompressed, the tables of 1,000 trials would take half of the
page's size limit. `report --json` prints them uncompressed.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from steelyard.heavy import pl

LEVEL: Final = 9
MOST_BYTES: Final = 500_000_000
"""Size limit of the unpacked tables, against malicious pages."""


def raw(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, Any]]:
    """Tables as columns and rows, ready for JSON."""
    return {
        name: {"columns": frame.columns, "rows": [[_plain(value) for value in row] for row in frame.iter_rows()]}
        for name, frame in tables.items()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, pl.Series | tuple) else value


def pack(tables: Mapping[str, Any]) -> str:
    """Tables as the text that is embedded in the page."""
    text = json.dumps(tables, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8"), LEVEL)).decode("ascii")


def unpack(text: str) -> Any:
    """The tables that `pack` packed. Raises ValueError for anything else."""
    try:
        deflated = base64.b64decode(text, validate=True)
        inflater = zlib.decompressobj()
        inflated = inflater.decompress(deflated, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"the tables of the page cannot be unpacked: {error}") from error
    if not inflater.eof:
        raise ValueError("the tables of the page are cut short, or too large")
    return json.loads(inflated)
