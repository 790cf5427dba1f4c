"""Distribution shape of a treatment's values: outliers, bimodality, normality; reported, never removed.

Outliers: beyond Tukey's fences, 1.5 interquartile ranges outside the box (J. W. Tukey, Exploratory Data Analysis,
1977). Two modes: B. W. Silverman, Using kernel density estimates to investigate multimodality, Journal of the Royal
Statistical Society B 43(1), 1981. Normality: Shapiro and Wilk's test (scipy) of independent values: start means, or the
trials of one start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from steelyard.analysis.frame import TrialFrame, start_means
from steelyard.analysis.inference import estimates
from steelyard.analysis.row import MeasuredTreatment, Number, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.wording import named
from steelyard.format import count
from steelyard.heavy import np, stats
from steelyard.model.responses import unit_of


class Shape(MeasuredTreatment):
    """Outliers, modes and normality of one treatment's values: pointed out, never removed."""

    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    outliers: int
    """Trials beyond Tukey's fences; none is removed."""
    outlying: str
    """These trials and their values."""
    skewness: Number = None
    """Sample skewness."""
    normality_p: P = None
    """p-value of Shapiro and Wilk's test of start means, or of the trials of one start; none below five."""
    unimodality_p: P = None
    """p-value of Silverman's test of one mode."""
    verdict: str
    """Peculiarities found."""


FEWEST = 10
"""Minimum number of values for a test of modes."""
FEWEST_FOR_NORMALITY = 5
"""Minimum number of values for a test of normality: with three, it detects little but two that are close together."""
RESAMPLES = 200
GRID = 256
MOST_CELLS = 2_000_000
"""Kernel values held at once: 16 MB."""
ALPHA = 0.01
"""Below this p a second mode is reported: strict, because every treatment is tested."""

Numbers: TypeAlias = "np.ndarray[Any, Any]"


def modes(values: Numbers, bandwidth: float) -> Numbers:
    """Number of modes of the normal kernel density of each row of `values`."""
    low, high = values.min() - 3 * bandwidth, values.max() + 3 * bandwidth
    grid = np.linspace(low, high, GRID)
    density = np.exp(-0.5 * ((grid[None, None, :] - values[:, :, None]) / bandwidth) ** 2).sum(axis=1)
    rising = np.diff(density, axis=1) > 0
    return np.asarray((rising[:, :-1] & ~rising[:, 1:]).sum(axis=1))


def two_modes(values: Sequence[float], rng: np.random.Generator) -> float | None:
    """p of Silverman's test that the density has one mode; None below ten values or without spread.

    h is the smallest bandwidth whose kernel density has one mode; p is the share of smoothed bootstrap samples, scaled
    to the variance of the data, that have more than one mode at h.
    """
    data = np.asarray(values, dtype=float)
    if len(data) < FEWEST or np.ptp(data) == 0:
        return None
    data = (data - data.mean()) / data.std()
    low, high = 1e-3, 4.0
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if modes(data[None, :], middle)[0] <= 1 else (middle, high)
    drawn = rng.choice(data, (RESAMPLES, len(data))) + high * rng.standard_normal((RESAMPLES, len(data)))
    centre = drawn.mean(axis=1, keepdims=True)
    drawn = centre + (drawn - centre) / math.sqrt(1 + high**2)
    at_once = max(1, MOST_CELLS // (len(data) * GRID))
    several = sum(
        int(np.sum(modes(drawn[place : place + at_once], high) > 1)) for place in range(0, RESAMPLES, at_once)
    )
    return several / RESAMPLES


def shapes(frame: TrialFrame, response: str, rng: np.random.Generator) -> tuple[Shape, ...]:
    """One row per treatment with a used trial."""
    pointed = []
    for treatment in frame.treatments:
        rows = frame.values(response, treatment)
        values = [float(value) for value in rows[response]]
        if not values:
            continue
        low, high = estimates.whiskers(values)
        outside = [f"{name} ({value:g})" for name, value in zip(rows["trial_id"], values, strict=True)
                   if not low <= value <= high]  # fmt: skip
        varies = len(values) > 2 and len(set(values)) > 1
        means = [mean for _, mean, _ in start_means(rows, response)]
        independent = means if len(means) > 1 else values
        p = two_modes(values, rng)
        pointed.append(
            Shape(
                treatment=treatment, response=response, unit=unit_of(response), n=len(values),
                starts=len(means), outliers=len(outside), outlying="; ".join(outside),
                skewness=float(stats.skew(values, bias=False)) if varies else None,
                normality_p=_normality(independent),
                unimodality_p=p, verdict=_verdict(len(outside), p),
            )
        )  # fmt: skip
    return tuple(pointed)


def _normality(values: Sequence[float]) -> float | None:
    enough = len(values) >= FEWEST_FOR_NORMALITY and len(set(values)) > 1
    return float(stats.shapiro(values).pvalue) if enough else None


def _verdict(outliers: int, p: float | None) -> str:
    remarks = []
    if p is not None and p < ALPHA:
        remarks.append("more than one mode: check whether starts or blocks differ")
    if outliers:
        remarks.append(f"{outliers} beyond the fences")
    return "; ".join(remarks) or ("nothing to point out" if p is not None else "too few values to look for modes")


def pointed_out(shapes: Sequence[Shape], response: str = "") -> list[str]:
    """Sentences on treatments with several modes, with outliers, or not normally distributed."""
    sentences = []
    several = [one for one in shapes if one.verdict.startswith("more than one mode")]
    if several:
        sentences.append(
            f"{named([one.treatment for one in several])} {'has' if len(several) == 1 else 'have'} trials of more than "
            "one mode: no single mean or median represents them. Check whether starts or blocks differ."
        )
    outlying = [one for one in shapes if one.outliers]
    if outlying:
        total = sum(one.outliers for one in outlying)
        sentences.append(
            f"{count(total, 'outlier')} among the trials of {named([one.treatment for one in outlying])} (more than "
            f"1.5 interquartile ranges beyond the quartiles); {'it was' if total == 1 else 'they were'} kept."
        )
    odd = [one for one in shapes if one.normality_p is not None and one.normality_p < ALPHA]
    if odd:
        sentences.append(
            f"{'Start means' if odd[0].starts > 1 else 'Trials'} of {named([one.treatment for one in odd])} are not "
            f"normally distributed (Shapiro and Wilk, p < {ALPHA:.0%}): medians and rank tests are unaffected, and "
            "ratios are less affected than means, because they are on logarithms."
        )
    return sentences


STATISTIC = Statistic(
    name="shape",
    row=Shape,
    title="Outliers, modes and normality of {response}",
    section=Section.SPREAD,
    compute=lambda context: shapes(context.frame, context.response, context.generator()),
    sentences=pointed_out,
    order=10,
    sentence_order=40,
)
