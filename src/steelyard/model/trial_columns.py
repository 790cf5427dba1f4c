"""Columns of the trial frame: names that no factor can have, because the frame has a column for each factor too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steelyard.model import responses

FIELDS: Final[Mapping[str, type]] = {
    "trial_id": str,
    "attempt": int,
    "block": int,
    "start": str,
    "start_replicate": int,
    "replicate": int,
    "order_in_start": int,
    "position": int,
    "control": bool,
    "outcome": str,
    "reasons": list,
    "system_fault": bool,
    "begun_s": float,
    "ended_s": float,
}
"""Columns from the record and its verdict, with the types of their values; `reasons` is a list of texts."""
DERIVED: Final = ("place_in_block", "order_of_treatment", "warm_up", "used")
"""Columns that follow from all records together."""
COVARIATE: Final = "covariate_"
"""Beginning of the name of a covariate's column."""


def is_column(name: str) -> bool:
    """Whether the frame has, or could have, a column of this name that is not a factor's."""
    return name in FIELDS or name in DERIVED or name in responses.every() or name.startswith(COVARIATE)
