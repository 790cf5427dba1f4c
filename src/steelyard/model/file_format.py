"""Format number of the files that Steelyard writes and reads: one is read, any other is refused."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

READS: Final = 1
"""The format that this version reads and writes."""
OTHER_FORMAT: Final = "other_format"
"""Kind of the validation error of a file in another format."""
OTHER_VERSION: Final = "use the version of Steelyard that wrote it"


def _read(number: Any) -> Any:
    if number != READS or isinstance(number, bool):
        facts = {"read": str(number), "reads": READS}
        raise PydanticCustomError(OTHER_FORMAT, "it is {read}, this version reads {reads}", facts)
    return number


FileFormat = Annotated[Literal[1], BeforeValidator(_read)]
"""Field `format` of a file."""


def other_format(read: object) -> str:
    """Problem of a file's format: `has format 2, this version reads 1`."""
    return f"has format {read}, this version reads {READS}"


def refusal(error: Exception) -> str:
    """The same of a file that could not be validated; empty if its format is not the reason."""
    if not isinstance(error, ValidationError):
        return ""
    faults = (fault for fault in error.errors(include_url=False) if fault["type"] == OTHER_FORMAT)
    return next((other_format(fault["ctx"]["read"]) for fault in faults), "")
