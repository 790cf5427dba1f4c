"""Inputs of jobs: the same bytes for the same seed, and what must come out, by counting all of them."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter

import pytest

from steelyard.model import job_inputs
from steelyard.model.job_inputs import Kind


def whole(kind: Kind, size: int, seed: int = 1) -> bytes:
    return b"".join(job_inputs.write(kind, size, seed))


@pytest.mark.parametrize("kind", ["text", "tera"])
def test_the_same_seed_gives_the_same_bytes(kind: Kind) -> None:
    text = whole(kind, 1_500_000)
    assert text == whole(kind, 1_500_000) != whole(kind, 1_500_000, seed=2)
    assert 1_499_800 < len(text) <= 1_500_000
    assert text.endswith(b"\n")
    # Kept data of an earlier build, and published numbers, are of these bytes.
    known = {"text": "6e73097592eb0e5f", "tera": "bcac2a2cdab5463c"}
    assert hashlib.sha256(text).hexdigest()[:16] == known[kind]


@pytest.mark.parametrize("kind", ["text", "tera"])
@pytest.mark.parametrize("size", [700_000, 20_300_000])
def test_what_is_expected_is_what_the_bytes_hold(kind: Kind, size: int) -> None:
    lines = whole(kind, size).splitlines()
    words = Counter(word for line in lines for word in line.split())
    found = job_inputs.expected(kind, size, 1)
    order = {"records": len(lines), "digest": str(sum(map(zlib.crc32, lines))), "sorted": True}
    counts = {"records": len(words), "digest": str(sum(zlib.crc32(b"%b %d" % one) for one in words.items()))}
    assert found == {"counts": counts, "order": order}
    assert tuple(found) == job_inputs.CHECKS


def test_words_are_as_frequent_as_those_of_a_language() -> None:
    counts = [count for _, count in Counter(whole("text", 1_000_000).split()).most_common()]
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.15)


def test_records_have_a_hundred_bytes_with_keys_of_their_own() -> None:
    lines = whole("tera", 1_000_000).splitlines(keepends=True)
    assert {len(line) for line in lines} == {100}
    assert len({line[:10] for line in lines}) == len(lines) == 10_000
