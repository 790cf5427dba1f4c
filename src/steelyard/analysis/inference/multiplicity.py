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
    """Whether a verdict would still be given at the corrected p of its own test; None if it decides nothing."""
    if verdict not in DECIDED or p_holm is None:
        return None
    return p_holm < 1 - confidence


class Tested(Protocol):
    """A row with the tests of a difference and of equivalence."""

    @property
    def verdict(self) -> str: ...
    @property
    def change(self) -> Estimate: ...
    @property
    def p(self) -> float | None: ...
    @property
    def tost_p(self) -> float | None: ...
    @property
    def p_holm(self) -> float | None: ...
    @property
    def tost_p_holm(self) -> float | None: ...
    @property
    def sentence(self) -> str: ...
    def model_copy(self, *, update: Mapping[str, Any]) -> Self: ...


AnyTested = TypeVar("AnyTested", bound=Tested)
Tests: TypeAlias = tuple[float | None, float | None]
"""Two p: of a difference and of equivalence, or as measured and corrected."""


def adjusted(rows: Sequence[AnyTested], further: Sequence[Tests] = ()) -> tuple[AnyTested, ...]:
    """Rows with Holm's correction over all of them and the `further` tests: of a difference, and of equivalence apart.

    The verdict stays; whether it survives is that of its own test, and the sentence says where it does not.
    """
    tests = [(one.p, one.tost_p) for one in rows] + list(further)
    p_holm, tost_p_holm = (holm([pair[which] for pair in tests]) for which in (0, 1))
    family = sum(p is not None for p, _ in tests)
    done = []
    for row, p, tost_p in zip(rows, p_holm, tost_p_holm, strict=False):
        known = row.model_copy(update={"p_holm": p, "tost_p_holm": tost_p, "family": family})
        own, corrected = tests_of_verdict(known)
        holds = survives(row.verdict, corrected, row.change.confidence)
        sentence = row.sentence + (f"; {lost(family, own, corrected)}" if holds is False else "")
        done.append(known.model_copy(update={"survives_holm": holds, "sentence": sentence}))
    return tuple(done)


def tests_of_verdict(row: Tested) -> Tests:
    """p of the row's verdict, and the same corrected: of equivalence where it says that, otherwise of a difference."""
    return (row.tost_p, row.tost_p_holm) if row.verdict == "equivalent" else (row.p, row.p_holm)


def lost(family: int, p: float | None, p_holm: float | None) -> str:
    """The sentence of a verdict that does not survive."""
    return f"would not survive Holm's correction over {family} comparisons (p {p:.2g}, corrected {p_holm:.2g})"
