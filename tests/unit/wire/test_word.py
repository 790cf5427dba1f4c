"""Words: the shared example is what is written, word for word."""

from __future__ import annotations

import json
from pathlib import Path

from steelyard.wire.word import Go, PhaseWord, Stop, Word, line_of

LINES = (Path(__file__).parents[3] / "schema" / "words.example.jsonl").read_text().splitlines()
KINDS: dict[str, type[Word]] = {"go": Go, "phase": PhaseWord, "stop": Stop}


def test_the_example_is_what_is_written_byte_for_byte() -> None:
    words = [KINDS[fields.pop("word")](**fields) for fields in map(json.loads, LINES)]
    assert [line_of(word) for word in words] == LINES
    assert {type(word) for word in words} == set(KINDS.values())
