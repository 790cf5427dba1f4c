"""Memory that a Parquet file will need, from its own headers, before anything of it is unpacked.

A file of 700 KB can announce a billion rows, or one text of 2 GB. The footer says how many rows and columns there are;
each page says in its header how large it will be. Both are read here: a footer that understates what its pages hold is
no whole file. The format: https://parquet.apache.org/docs/file-format/, Thrift's compact protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MAGIC: Final = b"PAR1"
TAIL_BYTES: Final = 8
"""Length of the footer, and the magic word."""
MOST_FOOTER_BYTES: Final = 2 << 20
"""130 groups of rows, as 33 million rows have, need 0.3 MB."""
HEADER_BYTES: Final = 64 << 10
"""Limit of a page's header, with statistics of long texts."""
MOST_PAGES: Final = 100_000
"""In a file: polars puts 1 MB or 20,000 values into one."""
MOST_DEPTH: Final = 12
"""Maximum nesting of structures."""
INTEGERS: Final = (4, 5, 6)
TRUE, FALSE = 1, 2
DICTIONARY_PAGE: Final = 2
# Numbers of fields.
ROWS, GROUPS = 3, 4
COLUMNS, ROWS_OF_GROUP = 1, 3
ELSEWHERE, METADATA = 1, 3
VALUES, COMPRESSED_BYTES, DATA_AT, DICTIONARY_AT = 5, 7, 9, 11
KIND, UNPACKED_BYTES, PACKED_BYTES, PAGE, PAGE_V2 = 1, 2, 3, 5, 8
VALUES_OF_PAGE: Final = 1

Fields = dict[int, Any]


@dataclass(frozen=True)
class Size:
    """Content of a file when it is unpacked."""

    rows: int
    unpacked_bytes: int
    """Unpacked bytes of all pages."""


def size_of(handle: int) -> Size:
    """The size of an open file. Raises ValueError if its headers contradict each other or cannot be read, OSError."""
    length = os.fstat(handle).st_size
    tail = os.pread(handle, TAIL_BYTES, max(0, length - TAIL_BYTES))
    footer_bytes = int.from_bytes(tail[:4], "little")
    if length < 2 * TAIL_BYTES or tail[4:] != MAGIC or not 0 < footer_bytes <= length:
        raise ValueError("no whole Parquet file")
    if footer_bytes > MOST_FOOTER_BYTES:
        raise ValueError(f"its footer has {footer_bytes:,} bytes, and at most {MOST_FOOTER_BYTES:,} are read")
    try:
        footer = Thrift(os.pread(handle, footer_bytes, length - TAIL_BYTES - footer_bytes)).struct()
        unpacked = pages = 0
        for group in footer.get(GROUPS, ()):
            for column in group[COLUMNS]:
                for of_page in _pages(handle, column, group[ROWS_OF_GROUP]):
                    unpacked, pages = unpacked + of_page, pages + 1
                    if pages > MOST_PAGES:
                        raise ValueError(f"more than {MOST_PAGES:,} pages")
        rows = footer[ROWS]
        if rows != sum(group[ROWS_OF_GROUP] for group in footer.get(GROUPS, ())):
            raise ValueError("its parts have other numbers of rows than the whole")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("no whole Parquet file") from error
    return Size(rows, unpacked)


def _pages(handle: int, column: Fields, rows: int) -> Iterator[int]:
    """Unpacked bytes of each page of a column in a group of that many rows."""
    if ELSEWHERE in column:
        raise ValueError("a column is said to be in another file")
    about = column[METADATA]
    at = min(about.get(DICTIONARY_AT) or about[DATA_AT], about[DATA_AT])
    end, values = at + about[COMPRESSED_BYTES], 0
    while at < end:
        thrift = Thrift(os.pread(handle, HEADER_BYTES, at))
        header = thrift.struct()
        if header[PACKED_BYTES] < 0 or header[UNPACKED_BYTES] < 0:
            raise ValueError("a page of a negative size")
        if header[KIND] != DICTIONARY_PAGE:
            values += (header.get(PAGE) or header[PAGE_V2])[VALUES_OF_PAGE]
        yield header[UNPACKED_BYTES]
        at += thrift.at + header[PACKED_BYTES]
    if values != rows or about[VALUES] != rows:
        raise ValueError("its columns have other numbers of values than rows")


class Thrift:
    """Reader of Thrift's compact protocol: numbers of fields to values. Whatever is cut short is an IndexError."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def struct(self, depth: int = 0) -> Fields:
        """The structure that begins here."""
        if depth > MOST_DEPTH:
            raise ValueError("nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self.value(kind, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """The value of this type that begins here."""
        if kind in INTEGERS:
            return self._integer()
        match kind:
            case 1 | 2 | 3:  # truth values in a list, a byte
                return self._byte()
            case 7:  # a double
                return self._skip(8)
            case 8:  # a text
                return self._skip(self._varint())
            case 9 | 10:  # a list, a set
                head = self._byte()
                count = head >> 4 if head >> 4 != 15 else self._varint()
                if count > len(self._content) - self.at:
                    raise IndexError(count)
                return [self.value(head & 15, depth) for _ in range(count)]
            case 12:
                return self.struct(depth + 1)
        raise ValueError("a field of an unknown type")

    def _skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self._content):
            raise IndexError(self.at)

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
