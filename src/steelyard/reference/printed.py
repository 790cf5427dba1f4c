"""A printed number and its rounding interval: all values that print as these digits."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal

from steelyard.model.value import Value
from steelyard.reference.rounding import Interval

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LONGEST_TEXT = 40
"""Maximum number of characters; no longer number is printed."""
LARGEST_EXPONENT = 300

RoundingKind = Literal["as printed", "significant", "decimals", "step", "exact"]


class Rounding(Value):
    """Number of digits to which a table's numbers were printed."""

    kind: RoundingKind = "as printed"
    """`as printed`: to the last printed digit. `significant`, `decimals`: to `digits` digits, with trailing zeros
    dropped. `step`: to multiples of a number. `exact`: not rounded."""
    digits: float = 0
    """The number of digits; for `step`, the step."""

    def words(self) -> str:
        """The rule in words."""
        match self.kind:
            case "significant":
                return f"{self.digits:g} significant digits, trailing zeros dropped"
            case "decimals":
                return f"{self.digits:g} decimals, trailing zeros dropped"
            case "step":
                return f"to multiples of {self.digits:g}"
            case _:
                return self.kind


AS_PRINTED = Rounding()


class Printed(Value):
    """One printed number. `value`, `low` and `high` are None if the text is not a number (blank, nan, inf)."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Every value that prints as `text`, both ends included; None if the text is not a number."""
        if self.low is None or self.high is None:
            return None
        return Interval(self.low, self.high)

    @property
    def whole(self) -> int | None:
        """The only whole number that prints as `text`, for counts; None if there are several or none."""
        if self.low is None or self.high is None or self.value is None:
            return None
        nearest = round(self.value)
        alone = self.high - nearest < 1 and nearest - self.low < 1
        return nearest if alone and self.low <= nearest <= self.high else None

    def counted(self) -> Printed:
        """The number as a count: exactly `whole`, if that is known."""
        n = self.whole
        return self if n is None else Printed(text=self.text, value=float(n), low=float(n), high=float(n))


def parse(text: str, rounding: Rounding = AS_PRINTED) -> Printed:
    """The printed number and its interval: `6.2e+03` is 6150 to 6250, `79` is 78.5 to 79.5.

    Below a power of ten, significant digits are finer (`1e+04` to two digits is 9950 to 10500, because 9900 prints as
    `9.9e+03`). A text with more digits than the rule allows counts as printed to its last digit. Blank, `nan` and `inf`
    have no interval. Raises ValueError for any other text.
    """
    text = text.strip()
    if text.lower() in ("", "nan", "inf", "+inf", "-inf"):
        return Printed(text=text)
    if not _NUMBER.fullmatch(text) or len(text) > LONGEST_TEXT:
        raise ValueError(f"{text!r} is not a number")
    number = Decimal(text)
    if abs(number.adjusted()) > LARGEST_EXPONENT:
        raise ValueError(f"{text!r} is beyond what a float holds")
    down, up = _halves(number, rounding)
    low, high = (number - up, number + down) if number < 0 else (number - down, number + up)
    return Printed(text=text, value=float(number), low=float(low), high=float(high))


def _halves(number: Decimal, rounding: Rounding) -> tuple[Decimal, Decimal]:
    """Maximum rounding error towards 0, and away from it."""
    last = Decimal(number.as_tuple().exponent)
    half = Decimal(5).scaleb(int(last) - 1)
    match rounding.kind:
        case "exact":
            return Decimal(0), Decimal(0)
        case "step":
            half = Decimal(str(rounding.digits)) / 2
        case "decimals":
            half = _finer(number, -int(rounding.digits))
        case "significant" if not number:
            return Decimal(0), Decimal(0)
        case "significant":
            unit = number.adjusted() - int(rounding.digits) + 1
            half = _finer(number, unit)
            digits = number.normalize().as_tuple().digits
            if digits == (1,) and half == Decimal(5).scaleb(unit - 1):
                return half / 10, half
        case _:
            pass
    return half, half


def _finer(number: Decimal, exponent: int) -> Decimal:
    """Half a unit of this power of ten, or of the number's own last non-zero digit if that is finer."""
    own = int(Decimal(number.normalize().as_tuple().exponent)) if number else exponent
    return Decimal(5).scaleb(min(own, exponent) - 1)
