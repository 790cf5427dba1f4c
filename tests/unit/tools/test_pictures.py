"""Pictures of the pages: a screenshot with fewer colours, a terminal as SVG that fetches nothing."""

from __future__ import annotations

import struct
import zlib

import pytest
from tools.docs.pictures import terminal
from tools.docs.pictures.small_png import SIGNATURE, small


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows: bytes, form: int) -> bytes:
    header = struct.pack(">IIBBBBB", 2, 5, 8, form, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pixels(picture: bytes) -> list[tuple[int, ...]]:
    palette = picture.partition(b"PLTE")[2]
    data = picture.partition(b"IDAT")[2]
    rows = zlib.decompressobj().decompress(data)
    return [tuple(palette[3 * place : 3 * place + 3]) for row in range(5) for place in rows[3 * row + 1 : 3 * row + 3]]


def test_every_filter_of_a_screenshot_is_understood() -> None:
    """Each row is white, then black, whichever way it is written."""
    white, black = b"\xff\xff\xff", b"\0\0\0"
    rows = b"\0" + white + black + b"\1" + white + b"\1\1\1" + b"\2" + bytes(6)
    rows += b"\3" + b"\x80\x80\x80" + b"\x81\x81\x81" + b"\4" + bytes(6)
    assert pixels(small(png(rows, 2))) == [(255, 255, 255), (0, 0, 0)] * 5


def test_a_form_that_no_browser_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="colour type 0"):
        small(png(b"\0\0\0" * 5, 0))


def test_a_terminal_is_drawn_with_its_colours_and_fetches_nothing() -> None:
    found = terminal.svg("\x1b[1;32mfaster\x1b[0m by 20%", 40)
    assert "faster" in found
    assert "#116329" in found
    assert "url(" not in found.replace("url(#", "")
    assert "http" not in found.replace("http://www.w3.org/2000/svg", "")
