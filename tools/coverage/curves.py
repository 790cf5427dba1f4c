"""Coverage of bands of curves: all seconds together, each alone, and the ratio of identical systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from steelyard.analysis.inference.curve_bands import band
from tools.coverage.planted import Numbers
from tools.coverage.tally import CONFIDENCE, Case, Outcome
from tools.coverage.trends import correlated

CURVES = "Aligned curves"
TOGETHER = "sup-t, signs of whole curves: every second of 300"
ALONE = "t in each second: one second"
RATIO = "sup-t on the ratio to the control: 1 is left out somewhere"
NOT_A_TEST = "t in each second, read as a test: 1 is left out somewhere"
SECONDS = 300
TRIAL_CV, SECOND_CV, R = 0.03, 0.1, 0.6
PLANTED = np.where(np.arange(SECONDS) < SECONDS // 3, 0.0, 0.7 * np.exp(-np.arange(SECONDS) / 100))
"""Logarithms of a course: a decision at a third of it."""
DRAWN = f"trials {TRIAL_CV:.0%}, seconds {SECOND_CV:.0%}, correlation {R:g}"


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for n in (6, 7, 10, 15):
        yield Case(CURVES, TOGETHER, f"a planted course; normal, {DRAWN}", str(n), partial(_together, n), share=0.5)
    yield Case(CURVES, ALONE, f"a planted course; normal, {DRAWN}", "5", _alone)
    for n in (6, 10):
        yield Case(CURVES, RATIO, f"identical systems; normal, {DRAWN}", str(n), partial(_ratio, n), "errs", share=0.5)
    yield Case(CURVES, NOT_A_TEST, f"identical systems; normal, {DRAWN}", "5", partial(_ratio, 5), "errs", "not used")


def _curves(rng: np.random.Generator, n: int) -> Numbers:
    drift = TRIAL_CV * rng.standard_normal((n, 1)) + SECOND_CV * correlated(rng, (n, SECONDS), R)
    return np.asarray(PLANTED + drift)


def _together(n: int, rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
    for _ in range(studies):
        values = band(_curves(rng, n), CONFIDENCE, rng)
        yield bool(np.all(np.abs(values.centre - PLANTED) <= values.half))


def _alone(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
    for study in range(studies):
        values, second = band(_curves(rng, 5), CONFIDENCE, rng), study % SECONDS
        yield bool(abs(values.centre[second] - PLANTED[second]) <= values.half[second])


def _ratio(n: int, rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
    for _ in range(studies):
        values = band(_curves(rng, n) - _curves(rng, n), CONFIDENCE, rng)
        yield bool(np.all(np.abs(values.centre) <= values.half))
