"""Holm's correction for multiple comparisons: which verdicts survive over all comparisons of a page or command.

Verdicts rest on intervals; these p-values only supplement them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from steelyard.model.estimate import Estimate

DIFFERENT = frozenset({"slower", "faster", "higher", "lower"})
"""The verdicts that say that there is a difference."""
DECIDED = DIFFERENT | {"equivalent"}


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (S. Holm, Scandinavian Journal of Statistics 6, 1979) over the given p-values.

    The i-th smallest of m is multiplied by m - i + 1, and none may be below the one before it. statsmodels'
    `multipletests` is not used: it runs the garbage collector at every call, 0.2 s each; tests compare the two.
    """
    known = sorted((p, place) for place, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p))
        adjusted[place] = least
    return adjusted


def holm_within(values: Sequence[float | None], others: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of these p-values in a family that has others, too: the same tests by further responses."""
    return holm([*values, *others])[: len(values)]


def survives(verdict: str, p_holm: float | None, confidence: float) -> bool | None:
    """Whether a verdict of a difference would still be given at Holm's p; None where the verdict says no difference."""
    if verdict not in DIFFERENT or p_holm is None:
        return None
    return p_holm < 1 - confidence


class Tested(Protocol):
    """A row with the tests of a difference and of equivalence."""

    @property
    def verdict(self) -> str: ...
    @property
    def ratio(self) -> Estimate: ...
    @property
    def p(self) -> float | None: ...
    @property
    def tost_p(self) -> float | None: ...
    @property
    def sentence(self) -> str: ...
    def model_copy(self, *, update: Mapping[str, Any]) -> Self: ...


AnyTested = TypeVar("AnyTested", bound=Tested)
Tests: TypeAlias = tuple[float | None, float | None]
"""p of a difference and of equivalence."""


def adjusted(rows: Sequence[AnyTested], beside: Sequence[Tests] = ()) -> tuple[AnyTested, ...]:
    """Rows with Holm's correction over all of them and the tests `beside`: of a difference, and of equivalence apart.

    The verdict stays; whether it survives is that of its own test, and the sentence says where it does not.
    """
    tests = [(one.p, one.tost_p) for one in rows] + list(beside)
    p_holm, tost_p_holm = (holm([pair[place] for pair in tests]) for place in (0, 1))
    family = sum(p is not None for p, _ in tests)
    done = []
    for row, p, tost_p in zip(rows, p_holm, tost_p_holm, strict=False):
        own, corrected = (row.tost_p, tost_p) if row.verdict == "equivalent" else (row.p, p)
        holds = None
        if row.verdict in DECIDED and corrected is not None:
            holds = corrected < 1 - row.ratio.confidence
        sentence = row.sentence + (f"; {lost(family, own, corrected)}" if holds is False else "")
        known = {"p_holm": p, "tost_p_holm": tost_p, "family": family, "survives_holm": holds, "sentence": sentence}
        done.append(row.model_copy(update=known))
    return tuple(done)


def lost(family: int, p: float | None, p_holm: float | None) -> str:
    """The sentence of a verdict that does not survive."""
    return f"would not survive Holm's correction over {family} comparisons (p {p:.2g}, corrected {p_holm:.2g})"
