"""Plausible numbers: the bounds within which a number of a store can have been measured, counted or planned.

A store may come from anywhere, and a number such as 1e308 is as good JSON as 12.5. Its square overflows, so every sum
and every deviation over it would fail: numbers outside the bounds are refused where files are read, and the file is
named, as with NaN. Within the bounds, squares, quotients and sums of any number of values are finite.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

from pydantic import Field

LARGEST: Final = 2**63 - 1
"""Largest value of a signed 64-bit counter. No time, rate, size or seed of a trial is greater."""
SMALLEST: Final = 1e-50
"""Smaller numbers are read as 0, so that quotients do not overflow: meters that decay give them."""
LATEST_S: Final = 32_503_680_000.0
"""Beginning of the year 3000, seconds since the epoch: later times have no date."""
LONGEST_NS: Final = 10**15
"""11 days: no operation takes longer."""
MOST_COUNTED: Final = 10**12
"""Operations in one bucket of one interval."""
LONGEST_SPENT_NS: Final = 10**17
"""Three years: time that the operations of one bucket took together in one interval."""
LONGEST_QUOTE: Final = 40
"""Characters of a number that an error shows."""
NOT_PLAUSIBLE: Final = f"is not a number of a measurement, which is finite and at most {float(LARGEST):.3g}"

Moment = Annotated[float, Field(ge=0, le=LATEST_S)]
"""A time, seconds since the epoch."""
Count = Annotated[int, Field(ge=0, le=LARGEST)]


def is_plausible(number: float) -> bool:
    """Whether a number can be a measurement, a count or a setting; NaN cannot."""
    return abs(number) <= LARGEST


def is_read_back(number: float) -> bool:
    """Whether a number that is written to a store is read from it unchanged."""
    return number == 0 or SMALLEST <= abs(number) <= LARGEST


def read_json(content: bytes | str) -> Any:
    """The value of a JSON text. Raises ValueError, with the key, for a number that is not plausible or not finite, and
    for what is not JSON; RecursionError."""
    try:
        return json.loads(content, parse_float=_float, parse_int=_int, parse_constant=_refused)
    except _Implausible as error:
        # Read again only here: to keep the key of every number would cost more than to read a sound file.
        read = json.loads(content, parse_float=_Written, parse_int=_Written, parse_constant=_Written)
        where = next(place for place, text in leaves(read) if isinstance(text, _Written) and text == str(error))
        raise ValueError(f"{where}{' = ' if where else ''}{_quoted(str(error))} {NOT_PLAUSIBLE}") from error


def read_json_leniently(content: bytes | str) -> Any:
    """The value of a JSON text, with NaN for numbers that are not plausible: for a reader that leaves out fields.
    Raises ValueError, RecursionError."""

    def known(text: str, number: Callable[[str], float]) -> float:
        try:
            return number(text)
        except _Implausible:
            return math.nan

    return json.loads(content, parse_float=lambda text: known(text, _float), parse_int=lambda text: known(text, _int))


def number_in(text: str) -> float | None:
    """The number that a fact states; None if it states none, or one that is not plausible."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if is_plausible(number) else None


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in tables and lists, with its keys."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{place}{'.' if place else ''}{key}")
    else:
        yield place, value


class _Implausible(ValueError):
    """A number as it is written."""


class _Written(str):
    """A number as it is written, in place of its value."""

    __slots__ = ()


def _float(text: str) -> float:
    number = float(text)
    if not is_plausible(number):
        _refused(text)
    return number if abs(number) >= SMALLEST else 0.0


def _int(text: str) -> int:
    # The length comes first: Python converts no number of thousands of digits.
    return number if len(text) <= LONGEST_QUOTE and is_plausible(number := int(text)) else _refused(text)


def _refused(text: str) -> Any:
    raise _Implausible(text)


def _quoted(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"
