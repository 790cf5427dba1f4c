"""What was due and never sent, and the rate that was not reached, in words."""

from __future__ import annotations

import pytest

from steelyard.dropin import shortfall
from tests.unit.wire import made

OPEN = 9000.0
UNSENT = "7,000 of 10,000 operations were due and not sent: neither done nor failed"


@pytest.mark.parametrize(
    ("totals", "asked_per_s", "duration_s", "says"),
    [
        ({"operations": 9000}, OPEN, 1.0, []),
        ({"operations": 8990, "unsent": 0}, OPEN, None, []),
        (
            {"operations": 2990, "errors": 10, "unsent": 7000},
            OPEN,
            3,
            [
                f"{UNSENT}; what was due by the end, at 3 s, was sent for 2 s more",
                "the rate was not reached: asked 9,000/s, reached 2,990/s",
            ],
        ),
        ({"operations": 3000}, OPEN, None, ["the rate was not reached: asked 9,000/s, reached 3,000/s"]),
        ({"operations": 3000, "unsent": 7000}, None, None, [UNSENT]),
        ({"operations": 5}, None, 1.0, []),
        ({}, OPEN, 1.0, []),
    ],
)
def test_sentences(
    totals: dict[str, int], asked_per_s: float | None, duration_s: float | None, says: list[str]
) -> None:
    assert shortfall.sentences(made.done(**totals), asked_per_s, duration_s) == says
