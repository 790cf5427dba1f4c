"""Fractions of two-level designs: published sizes are found again, aliases are what the columns say."""

from __future__ import annotations

import itertools
import math

import pytest

from steelyard.judging import fractional_design
from steelyard.judging.fractional_design import Fraction, of_design, parsed, smallest

NAMES = "abcdefghijklmno"


@pytest.mark.parametrize(
    ("factors", "resolution", "size"),
    [
        (3, 3, 4),
        (4, 4, 8),
        (5, 5, 16),
        (5, 3, 8),
        (6, 4, 16),
        (7, 3, 8),
        (7, 4, 16),
        (8, 4, 16),
        (8, 5, 64),
        (11, 3, 16),
    ],
)
def test_the_sizes_of_published_fractions(factors: int, resolution: int, size: int) -> None:
    """Box, Hunter and Hunter 2005, table 6.22: the least number of treatments of each resolution."""
    found = smallest(tuple(NAMES[:factors]), frozenset(), resolution)
    assert found is not None
    assert len(list(found.combinations())) == size
    assert (found.resolution or 0) >= resolution


def column(found: Fraction, word: frozenset[str]) -> tuple[int, ...]:
    return tuple(math.prod(one[name] for name in word) for one in found.combinations())


@pytest.mark.parametrize(("factors", "resolution"), [(4, 4), (5, 3), (6, 4), (7, 3)])
def test_aliases_are_the_effects_with_the_same_column(factors: int, resolution: int) -> None:
    """The truth by brute force: two interactions are aliases where their columns agree, or are opposite."""
    found = smallest(tuple(NAMES[:factors]), frozenset(), resolution)
    assert found is not None
    effects = [
        frozenset(word) for size in range(1, 4) for word in itertools.combinations(found.factors, size)
    ]  # fmt: skip
    for one in effects:
        mine = column(found, one)
        truth = {other for other in effects if other != one and column(found, other) in (mine, tuple(-x for x in mine))}
        assert set(found.aliases(one)) == truth
        assert one in found.words() or sum(mine) == 0, "every effect that varies is balanced"


def test_words_of_the_defining_relation_keep_their_signs() -> None:
    found = Fraction(tuple("abcde"), parsed({"d": "-a * b", "e": "a*c"}, tuple("abcde")))
    words = {"".join(sorted(word)): sign for word, sign in found.words().items()}
    assert words == {"abd": -1, "ace": 1, "bcde": -1}
    for word, sign in found.words().items():
        assert set(column(found, word)) == {sign}


def test_what_cannot_be_told_apart_is_said_in_words() -> None:
    names = ("nodes", "threads", "consistency")
    found = Fraction(names, parsed({"nodes": "threads * consistency"}, names))
    assert found.sentences()[0] == "the effect of nodes cannot be separated from threads x consistency"


def test_hard_factors_vary_freely() -> None:
    """Or are generated from each other: every start then serves both levels of every other factor."""
    for hard in (frozenset("ab"), frozenset("abcd")):
        found = smallest(tuple("abcdef"), hard, 3)
        assert found is not None
        for name, (_, word) in found.generators.items():
            assert (name in hard) == (word <= hard)


@pytest.mark.parametrize(
    ("generators", "words"),
    [
        ({"x": "a * b"}, "x is not a factor of two levels"),
        ({"c": "a * x"}, "x is not a factor of two levels"),
        ({"c": ""}, "an empty name is not a factor"),
        ({"c": "a * a"}, "twice"),
        ({"c": "a * b", "d": "a * c"}, "c is generated itself"),
    ],
)
def test_generators_that_say_nothing(generators: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        of_design(dict.fromkeys("abcd", 2), frozenset(), generators, None)


def test_there_is_not_always_one() -> None:
    assert smallest(("a", "b"), frozenset(), 3) is None
    assert smallest(tuple("abcde"), frozenset(), 6) is None
    assert of_design({"a": 3}, frozenset(), {}, 3) is None
    assert fractional_design.MOST_FACTORS == 15
