"""A screenshot with at most 256 colours: a third of the bytes, and to the eye the same page."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from typing import Final

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
MOST_COLOURS: Final = 256
STEP: Final = 17
"""Each channel keeps 16 values."""


def small(png: bytes) -> bytes:
    """The same picture with a palette. Raises ValueError for a form that a browser does not write."""
    width, height, channels, data = _chunks(png)
    colours = Counter[tuple[int, int, int]]()
    rows = []
    for row in _rows(zlib.decompress(data), width, height, channels):
        rounded = bytes((value + STEP // 2) // STEP * STEP for value in row)
        rows.append(list(zip(*(rounded[channel::channels] for channel in range(3)), strict=True)))
        colours.update(rows[-1])
    palette = [colour for colour, _ in colours.most_common(MOST_COLOURS)]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in colours.keys() - places.keys():
        places[colour] = min(range(len(palette)), key=lambda place: _distance(palette[place], colour))
    body = b"".join(b"\0" + bytes(places[colour] for colour in row) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", bytes(sum(palette, ()))), (b"IDAT", zlib.compress(body, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, part) for kind, part in parts)


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    return sum((mine - theirs) ** 2 for mine, theirs in zip(one, other, strict=True))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(png: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, channels, and the compressed rows."""
    place, data = len(SIGNATURE), b""
    width = height = channels = 0
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        content = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height, depth, form, _, _, interlaced = struct.unpack(">IIBBBBB", content)
            channels = {2: 3, 6: 4}.get(form, 0)
            if depth != 8 or not channels or interlaced:
                raise ValueError(f"a PNG of depth {depth} and colour type {form}")
        elif kind == b"IDAT":
            data += content
        place += 12 + length
    return width, height, channels, data


def _rows(raw: bytes, width: int, height: int, channels: int) -> list[bytearray]:
    """The rows without their filters (PNG specification, section 9)."""
    length = width * channels
    above, rows = bytearray(length), []
    for number in range(height):
        begin = number * (length + 1)
        kind, row = raw[begin], bytearray(raw[begin + 1 : begin + 1 + length])
        for index in range(length) if kind else ():
            left = row[index - channels] if index >= channels else 0
            up = above[index]
            corner = above[index - channels] if index >= channels else 0
            guess = (0, left, up, (left + up) // 2)[kind] if kind < 4 else _paeth(left, up, corner)
            row[index] = (row[index] + guess) & 255
        rows.append(row)
        above = row
    return rows


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    distances = abs(guess - left), abs(guess - up), abs(guess - corner)
    return (left, up, corner)[distances.index(min(distances))]
