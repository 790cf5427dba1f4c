"""Inputs of jobs: made up from a seed, and what must come out of them. Pure.

An input is a series of blocks of about 1 MB, of which there are `BLOCKS` different ones, in an order that the seed
gives: so the counts of many gigabytes follow from those of 8 MB. The same seed gives the same bytes everywhere.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

Kind = Literal["text", "tera"]
"""text: lines of words; tera: lines of 100 bytes, of which the first 10 are the key, as those of TeraGen."""
CHECKS: Final = ("counts", "order")
"""Checks of a job's output; see `expected`."""
BLOCKS: Final = 8
BLOCK_BYTES: Final = 1_000_000
VOCABULARY: Final = 10_000
WORDS: Final = (6, 18)
"""Fewest and most words of a line."""
RECORD_BYTES: Final = 100
KEY: Final = (10, bytes(range(33, 127)))
"""Characters of a key, and those that it is drawn from."""
ONSETS: Final = ("b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "ch", "sh", "")
VOWELS: Final = ("a", "e", "i", "o", "u", "ea", "ou")
CODAS: Final = ("", "", "n", "r", "s", "t", "ll", "nd")


def write(kind: Kind, size: int, seed: int) -> Iterator[bytes]:
    """The input in chunks of whole lines: `size` bytes, without the last line if it would be cut off."""
    blocks = _blocks(kind, seed)
    for block, length in _order(blocks, size, seed):
        yield blocks[block][:length]


def expected(kind: Kind, size: int, seed: int) -> dict[str, dict[str, int | bool | str]]:
    """Result of each check of a job that is right. counts: `records`, the number of different words, and
    `digest`, the sum of the CRC-32 of `WORD COUNT` of each. order: `records`, the number of lines, `digest`, the sum of
    the CRC-32 of each, and `sorted`. Digests are texts. Takes seconds for the first of a kind and seed."""
    words, lines, digest = Counter[bytes](), 0, 0
    blocks, whole = _blocks(kind, seed), _sums(kind, seed)
    for (block, length), times in Counter(_order(blocks, size, seed)).items():
        of_words, of_lines, of_digest = whole[block] if length == len(blocks[block]) else _sum(blocks[block][:length])
        for word, count in of_words.items():
            words[word] += times * count
        lines, digest = lines + times * of_lines, digest + times * of_digest
    counts = sum(zlib.crc32(b"%b %d" % one) for one in words.items())
    return {
        "counts": {"records": len(words), "digest": str(counts)},
        "order": {"records": lines, "digest": str(digest), "sorted": True},
    }


@lru_cache(maxsize=2)
def _sums(kind: Kind, seed: int) -> list[tuple[Counter[bytes], int, int]]:
    return [_sum(block) for block in _blocks(kind, seed)]


def _sum(text: bytes) -> tuple[Counter[bytes], int, int]:
    """Words of a text, its number of lines, the sum of their CRC-32."""
    lines = text.splitlines()
    return Counter(text.split()), len(lines), sum(map(zlib.crc32, lines))


def _order(blocks: list[bytes], size: int, seed: int) -> Iterator[tuple[int, int]]:
    """Numbers of the blocks of an input in order, each with the bytes of it that belong to the input."""
    drawn = random.Random(f"order {seed}")
    while size > 0:
        block = drawn.randrange(BLOCKS)
        whole = len(blocks[block])
        length = whole if whole <= size else blocks[block].rfind(b"\n", 0, size) + 1
        if length:
            yield block, length
        size -= whole


@lru_cache(maxsize=2)
def _blocks(kind: Kind, seed: int) -> list[bytes]:
    drawn = random.Random(f"{kind} {seed}")
    if kind == "tera":
        return [_records(drawn) for _ in range(BLOCKS)]
    vocabulary = _vocabulary(drawn)
    # Zipf's law with exponent 1, as of words in English.
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    return [_lines(drawn, vocabulary, weights) for _ in range(BLOCKS)]


def _vocabulary(drawn: random.Random) -> list[bytes]:
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        syllables = drawn.choices((1, 2, 3), (2, 5, 3))[0]
        words["".join(drawn.choice(part) for _ in range(syllables) for part in (ONSETS, VOWELS, CODAS))] = None
    return [word.encode() for word in sorted(words, key=len)]


def _lines(drawn: random.Random, vocabulary: list[bytes], weights: list[float]) -> bytes:
    lines, size = list[bytes](), 0
    while size < BLOCK_BYTES:
        line = b" ".join(drawn.choices(vocabulary, cum_weights=weights, k=drawn.randint(*WORDS)))
        lines.append(line)
        size += len(line) + 1
    return b"\n".join(lines) + b"\n"


def _records(drawn: random.Random) -> bytes:
    length, alphabet = KEY
    lines = []
    for number in range(BLOCK_BYTES // RECORD_BYTES):
        key = bytes(drawn.choices(alphabet, k=length))
        filler = b"%032d" % number + b"ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 3
        lines.append((key + filler)[: RECORD_BYTES - 1])
    return b"\n".join(lines) + b"\n"
