"""Histograms as the HdrHistogram library writes them: the bytes are what its Java version 2.1.12 gives."""

from __future__ import annotations

import base64
import struct
import zlib

from steelyard import hdrlog

COUNTS = [
    (0, 1),
    (1, 2),
    (150, 300),
    (2047, 1),
    (2048, 1),
    (2049, 4),
    (5001, 7),
    (123_456, 1_000_000),
    (7_200_000, 3),
    (9_000_000_000, 1),
]
JAVA = (
    "1c849313000000190000000000000003000000000000000100000003ffffffff3ff0000000000000"
    "0204a702d804cf1d020ac1130ecb4a80897aa55d06a3a50102"
)


def test_a_line_holds_the_bytes_of_the_java_library() -> None:
    line = hdrlog.line(1.5, 2.0, COUNTS)
    start, length, greatest, text = line.strip().split(",")
    assert (start, length, greatest) == ("1.500", "2.000", "9000.000")
    raw = base64.b64decode(text)
    cookie, size = struct.unpack(">ii", raw[:8])
    assert (cookie, size) == (0x1C849304 | 0x10, len(raw) - 8)
    assert zlib.decompress(raw[8:]).hex() == JAVA


def test_nothing_counted() -> None:
    line = hdrlog.line(0.0, 1.0, [], tag="read")
    assert line.startswith("Tag=read,0.000,1.000,0.000,")
    assert len(zlib.decompress(base64.b64decode(line.rsplit(",", 1)[1])[8:])) == 40


def test_head_has_the_start() -> None:
    assert hdrlog.head("Logging for: READ", 1795269919.361).splitlines()[:3] == [
        "#[Logging for: READ]",
        "#[Histogram log format version 1.1]",
        "#[StartTime: 1795269919.361 (seconds since epoch), Sat Nov 21 14:05:19 UTC 2026]",
    ]
