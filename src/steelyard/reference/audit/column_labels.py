"""Labels of columns for people: `joining_s` is shown as `joining (s)`, a response by its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steelyard.model import responses

UNITS: Final = {"percent": "%", "ms": "ms", "s": "s", "gb": "GB", "kb": "KB", "mb": "MB"}
"""Parts of a name that are a unit, as people write it."""
WORDS: Final = {"ram": "RAM", "cpu": "CPU", "mbit": "Mbit", "std": "standard deviation", "sd": "standard deviation",
                "se": "standard error", "err": "error", "cv": "coefficient of variation", "cohens": "Cohen's",
                "hedges": "Hedges'"}  # fmt: skip
NAMES: Final = {"std_err": "standard error of the slope", "p_value": "p-value", "r_value": "r"}
OF_NAMES: Final = ("metric", "response")
"""Columns whose levels are names of columns themselves."""


def column_label(name: str) -> str:
    """The label of a column of a shipped table or a file; what has no underscore is shown as it is printed there."""
    if name in NAMES or "_" not in name:
        return NAMES.get(name, name)
    if name in responses.every():
        response = responses.of(name)
        return f"{response.label} ({response.unit})" if response.unit else response.label
    parts = name.split("_")
    # `requests_per_s`: the unit is part of the words.
    units = [] if "per" in parts else [part for part in parts if part.lower() in UNITS]
    words = " ".join(WORDS.get(part, part) for part in parts if part not in units)
    return f"{words} ({UNITS[units[-1].lower()]})" if units and words else words or name


def cell_words(cell: Mapping[str, str]) -> str:
    """The cell of a number: `nodes before 5, RAM (GB) 1`; levels that the table leaves blank are left out."""
    return ", ".join(
        f"{column_label(name)} {column_label(level) if name in OF_NAMES else level}"
        for name, level in cell.items()
        if level
    )
