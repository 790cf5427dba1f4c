"""Java's number formats and ConcurrentHashMap order, on which scripts that parse YCSB's output depend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal

LONG_MAX = 2**63 - 1


def double(value: float) -> str:
    """Double.toString: decimal between 1e-3 and 1e7, else with an exponent; the shortest digits that round-trip."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(str(digit) for digit in digits).rstrip("0") or "0"
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def two_places(value: float) -> str:
    """DecimalFormat("#.##"), which rounds half to even."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    text = format(Decimal(repr(value)).quantize(Decimal("0.01"), ROUND_HALF_EVEN), "f")
    return text.rstrip("0").rstrip(".")


def string_hash(text: str) -> int:
    """String.hashCode as an unsigned number."""
    code = 0
    for letter in text:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code


def map_order(names: Iterable[str]) -> list[str]:
    """The iteration order of a ConcurrentHashMap of strings; keys of one bin in insertion order."""
    kept = list(dict.fromkeys(names))
    bins = 16
    while len(kept) >= bins * 3 // 4:
        bins *= 2

    def place(name: str) -> int:
        code = string_hash(name)
        return (code ^ code >> 16) & (bins - 1)

    return sorted(kept, key=place)
