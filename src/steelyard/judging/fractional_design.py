"""Fractional factorial designs with two levels: generators, defining relation, aliases, resolution.

Levels are -1 (first) and +1 (second). A *generator* sets a factor's level to the product of other factors' levels, so
that the product of all of them is the same in every treatment: a *word* of the defining relation. Products of words are
words too. An effect times a word is its *alias*: both appear as the same difference. The *resolution* is the length of
the shortest word: from 3 on no two factors are aliased, from 4 on no factor is aliased with a two-factor interaction
(Box, Hunter and Hunter 2005, Statistics for Experimenters, chapter 6). Pure; measuring and reading both use it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

Word = frozenset[str]
LEAST_RESOLUTION = 3
MOST_FACTORS = 15
"""Maximum number of two-level factors in a design."""
MOST_TRIED = 50_000
"""Maximum number of generator sets that the search tries for one size of the fraction."""
MOST_KEPT = 50
"""The search stops after this many fractions with the resolution, and takes the best of them."""
LONGEST_TOLD = 3
"""Interactions of more factors are not named as aliases: they are usually small."""


@dataclass(frozen=True)
class Fraction:
    """A fraction of the two-level factors of a design."""

    factors: tuple[str, ...]
    generators: Mapping[str, tuple[int, Word]]
    """Generated factor to the sign and the factors of its product."""

    @property
    def base(self) -> tuple[str, ...]:
        """The factors that vary freely."""
        return tuple(name for name in self.factors if name not in self.generators)

    def combinations(self) -> Iterator[dict[str, int]]:
        """Every combination of signs, the last free factor fastest."""
        for signs in itertools.product((-1, 1), repeat=len(self.base)):
            free = dict(zip(self.base, signs, strict=True))
            generated = {
                name: sign * math.prod(free[one] for one in word) for name, (sign, word) in self.generators.items()
            }
            yield {name: {**free, **generated}[name] for name in self.factors}

    def words(self) -> dict[Word, int]:
        """The defining relation: each word and its sign."""
        relation: dict[Word, int] = {}
        for name, (sign, word) in self.generators.items():
            new = word | {name}
            relation |= {new ^ other: sign * of for other, of in relation.items()} | {new: sign}
        return relation

    @property
    def resolution(self) -> int | None:
        """Length of the shortest word; None for a full factorial."""
        return min(map(len, self.words()), default=None)

    def aliases(self, effect: Set[str], longest: int = LONGEST_TOLD) -> tuple[Word, ...]:
        """Aliases of an effect (a factor, or an interaction) with at most `longest` factors, shortest first."""
        products = {frozenset(effect) ^ word for word in self.words()}
        short = (one for one in products if 0 < len(one) <= longest)
        return tuple(sorted(short, key=lambda one: (len(one), self.place(one))))

    def place(self, word: Set[str]) -> tuple[int, ...]:
        """Indices of a word's factors, as a sort key."""
        return tuple(sorted(self.factors.index(name) for name in word))

    def interaction_text(self, word: Set[str]) -> str:
        """An interaction as people write it: `threads x consistency`."""
        return " x ".join(sorted(word, key=self.factors.index))

    def sentences(self) -> tuple[str, ...]:
        """Aliases in sentences: for each factor, then for two-factor interactions with each other."""
        lines = []
        for name in self.factors:
            short = self.aliases({name}, 2) or self.aliases({name})
            if short:
                which = " or ".join(self.interaction_text(one) for one in short)
                lines.append(f"the effect of {name} cannot be separated from {which}")
        seen: set[Word] = set()
        for pair in map(frozenset, itertools.combinations(self.factors, 2)):
            others = [one for one in self.aliases(pair, 2) if len(one) == 2]
            if others and pair not in seen:
                seen |= {pair, *others}
                which = " or ".join(self.interaction_text(one) for one in others)
                lines.append(f"{self.interaction_text(pair)} cannot be separated from {which}")
        return tuple(lines)


def of_design(
    levels: Mapping[str, int], hard: Set[str], generators: Mapping[str, str], resolution: int | None
) -> Fraction | None:
    """The fraction of the two-level factors among `levels`: by its generators, or the smallest with the resolution.

    None if there is no such fraction. Raises ValueError for generators that cannot be parsed.
    """
    two = tuple(name for name, count in levels.items() if count == 2)
    if generators:
        return Fraction(two, parsed(generators, two))
    return smallest(two, hard & set(two), resolution or LEAST_RESOLUTION)


def parsed(generators: Mapping[str, str], factors: Sequence[str]) -> dict[str, tuple[int, Word]]:
    """`{"c": "a * b"}` or `"-a * b"` as signs and words. Raises ValueError with the reason."""
    by_factor: dict[str, tuple[int, Word]] = {}
    for name, text in generators.items():
        if name not in factors:
            raise ValueError(f"{name} is not a factor of two levels; there are {', '.join(factors) or 'none'}")
        negative = text.strip().startswith("-")
        names = [one.strip() for one in text.strip().removeprefix("-").split("*")]
        for factor in names:
            if factor not in factors:
                raise ValueError(f"{name} = {text!r}: {factor or 'an empty name'} is not a factor of two levels")
            if factor in generators:
                raise ValueError(f"{name} = {text!r}: {factor} is generated itself; name factors that vary freely")
        if len(set(names)) < len(names):
            raise ValueError(f"{name} = {text!r}: a factor is listed twice")
        by_factor[name] = (-1 if negative else 1, frozenset(names))
    return by_factor


def smallest(factors: Sequence[str], hard: Set[str], resolution: int) -> Fraction | None:
    """The smallest fraction with at least this resolution; among equals, one with few short words.

    Factors that need a new cluster vary freely as far as possible, and are generated only from each other, so that
    every start serves all levels of the other factors. None if no half fraction has the resolution.
    """
    ordered = sorted(factors, key=lambda name: name not in hard)
    for generated in range(len(factors) - 1, 0, -1):
        if 2 ** (len(factors) - generated) <= len(factors) and resolution >= LEAST_RESOLUTION:
            continue
        for generated_factors in _generated(ordered, hard, generated):
            best = _best(tuple(factors), generated_factors, hard, resolution)
            if best is not None:
                return best
    return None


def _generated(ordered: Sequence[str], hard: Set[str], count: int) -> Iterator[tuple[str, ...]]:
    """Choices of the factors to generate: easy factors from the last on, then hard ones."""
    easy, firm = [one for one in ordered if one not in hard], [one for one in ordered if one in hard]
    for of_hard in range(min(count, max(0, len(firm) - 1)) + 1):
        if count - of_hard <= len(easy):
            yield (*firm[len(firm) - of_hard :], *easy[len(easy) - (count - of_hard) :])


def _best(factors: tuple[str, ...], generated: tuple[str, ...], hard: Set[str], resolution: int) -> Fraction | None:
    free = [name for name in factors if name not in generated]
    words = [
        frozenset(word)
        for length in range(len(free), resolution - 2, -1)
        for word in itertools.combinations(free, length)
    ]
    kept: list[Fraction] = []
    tried = 0

    def extend(chosen: tuple[Word, ...], relation: Mapping[Word, int]) -> None:
        nonlocal tried
        if len(chosen) == len(generated):
            kept.append(Fraction(factors, {name: (1, word) for name, word in zip(generated, chosen, strict=True)}))
            return
        name = generated[len(chosen)]
        for word in words:
            if len(kept) >= MOST_KEPT or tried >= MOST_TRIED:
                return
            if (name in hard) != (word <= hard):
                continue
            tried += 1
            new = word | {name}
            added = {new: 1, **{new ^ other: 1 for other in relation}}
            if min(map(len, added)) >= resolution:
                extend((*chosen, word), {**relation, **added})

    extend((), {})
    return min(kept, key=_aberration, default=None)


def _aberration(fraction: Fraction) -> tuple[int, ...]:
    """Number of words of each length, in ascending length (the word length pattern): fewer short ones are better."""
    lengths = [len(word) for word in fraction.words()]
    return tuple(lengths.count(length) for length in range(1, len(fraction.factors) + 1))
