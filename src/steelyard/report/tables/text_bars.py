"""Chart of an answer in text: a bar per level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.narrative.answer_table import AnswerRow

BAR: Final = "█"
LEAST_BAR: Final = 8
"""Minimum width of the bars; below it nothing is drawn."""


def bars(rows: Sequence[AnswerRow], width: int) -> list[str]:
    """A bar from 0 per level, on one scale for all; nothing if values are missing or the lines have no room."""
    known = [row for row in rows if row.value is not None and row.value >= 0]
    greatest = max((row.value or 0.0 for row in known), default=0.0)
    names = [f"{row.line}, {row.level_text}" if row.line else row.level_text for row in known]
    name_room = max(map(len, names), default=0)
    value_room = max((len(row.value_text) for row in known), default=0)
    room = width - name_room - value_room - 3
    if len(known) < 2 or greatest <= 0 or room < LEAST_BAR:
        return []
    return [
        f"{name:<{name_room}} |{BAR * max(1, round(room * (row.value or 0.0) / greatest))} {row.value_text}"
        for name, row in zip(names, known, strict=True)
    ]
