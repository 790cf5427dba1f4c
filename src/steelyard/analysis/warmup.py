"""Where the warm-up ends: the study's fixed count beside what the series itself shows.

MSER: K. P. White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69(6), 1997,
323-334. MSER-5, over means of five: K. P. White, M. J. Cobb, S. C. Spratt, A comparison of five steady-state
truncation heuristics for simulation, Winter Simulation Conference 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from steelyard.analysis import estimates
from steelyard.analysis.findings import Steady
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import UNITS, Treatment, WarmUp, WarmUpVerdict

BATCH = 5
FEWEST_BATCHES = 4
"""With fewer batches a cut could only fall in the second half, which MSER forbids."""
ALPHA = 0.01
"""Level of the two checks behind the verdict: strict, because the cut was chosen by looking at the same series."""


@dataclass(frozen=True)
class Cut:
    """Observations to drop, and whether the rule stopped at its bound, half of the series."""

    drop: int
    at_bound: bool


def mser5(series: Sequence[float]) -> Cut | None:
    """The truncation point of MSER-5; None below 20 values.

    With batch means z_1..z_k of 5 values each: d* = argmin over 0 <= d <= k/2 of
    sum_{j>d} (z_j - mean_{j>d})^2 / (k - d)^2; the cut is 5 d* values. Values behind the last whole batch are not
    used to find it.
    """
    batches = len(series) // BATCH
    if batches < FEWEST_BATCHES:
        return None
    z = np.asarray(series[: batches * BATCH], dtype=float).reshape(batches, BATCH).mean(axis=1)
    candidates = range(batches // 2 + 1)
    scores = [float(np.sum((z[d:] - z[d:].mean()) ** 2)) / (batches - d) ** 2 for d in candidates]
    best = int(np.argmin(scores))
    return Cut(drop=best * BATCH, at_bound=best == batches // 2)


def judge(series: Sequence[float], noun: str = "trial") -> tuple[WarmUpVerdict, int | None, str]:
    """(verdict, cut, the sentence behind it) of a series: trials of one treatment in one start, or seconds.

    What is left after the cut drifts if Kendall's tau over its order differs from 0 (1%). The cut counts as warm-up
    only if the dropped part differs from the rest (Mann-Whitney, 1%), or the whole has a trend that the rest has not.
    """
    cut = mser5(series)
    if cut is None:
        needed = BATCH * FEWEST_BATCHES
        return "none", None, f"{len(series)} {noun}s are too few to detect a steady state; MSER-5 needs {needed}"
    rest = series[cut.drop :]
    tau, left_p = _trend(rest)
    if left_p < ALPHA and cut.at_bound:
        return "none", cut.drop, f"MSER-5 would drop half of the {len(series)} {noun}s and the rest still moves"
    if left_p < ALPHA:
        way = "rises" if tau > 0 else "falls"
        return "drifting", cut.drop, f"after {noun} {cut.drop} the series still {way} (Kendall's tau {tau:+.2f})"
    if not cut.drop:
        return "steady", 0, "MSER-5 drops nothing"
    differs = _p(stats.mannwhitneyu(series[: cut.drop], rest).pvalue) < ALPHA
    if differs or _trend(series)[1] < ALPHA:
        return "warm-up", cut.drop, f"the first {cut.drop} {noun}s differ from the {len(rest)} after them"
    return "steady", 0, f"MSER-5 pointed at {noun} {cut.drop}, but the {noun}s before it do not differ from the rest"


def _trend(series: Sequence[float]) -> tuple[float, float]:
    """Kendall's tau over the order, and its p-value."""
    found = stats.kendalltau(range(len(series)), series)
    return (0.0 if np.isnan(found.statistic) else float(found.statistic)), _p(found.pvalue)


def _p(value: float) -> float:
    return 1.0 if np.isnan(value) else float(value)


def warm_up(
    frame: TrialFrame, response: str, treatment: Treatment, start: str, confidence: float = 0.95
) -> WarmUp | None:
    """The series of valid trials of a treatment in a start, warm-up included; None if there is no such trial."""
    rows = frame.where(treatment).filter(
        (pl.col("start") == start) & (pl.col("outcome") == "valid") & pl.col(response).is_not_null()
    )
    series = [float(value) for value in rows.sort("order_of_treatment")[response]]
    if not series:
        return None
    unit = UNITS[response]
    verdict, cut, detail = judge(series)
    mean_all = estimates.mean(series, unit, confidence, "all trials")
    fixed, found = series[frame.warm_up_trials :], series[cut or 0 :]
    mean_fixed = estimates.mean(fixed, unit, confidence, "trials after the fixed count") if fixed else None
    mean_found = estimates.mean(found, unit, confidence, "trials after the detected cut") if cut is not None else None
    return WarmUp(
        treatment=treatment,
        start=start,
        response=response,
        unit=unit,
        n=len(series),
        fixed_cut=min(frame.warm_up_trials, len(series)),
        detected_cut=cut,
        verdict=verdict,
        detail=detail,
        mean_all=mean_all,
        mean_fixed=mean_fixed,
        mean_detected=mean_found,
        change_fixed=_change(mean_fixed.value, mean_all.value) if mean_fixed else None,
        change_detected=_change(mean_found.value, mean_all.value) if mean_found else None,
    )


def _change(value: float, base: float) -> float | None:
    return (value - base) / base if base else None


def warm_ups(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[WarmUp, ...]:
    """Every treatment in every start that it was tried in."""
    found = []
    for treatment in frame.treatments():
        for start in frame.where(treatment)["start"].unique(maintain_order=True):
            one = warm_up(frame, response, treatment, str(start), confidence)
            if one is not None:
                found.append(one)
    return tuple(found)


def steady(
    series: Sequence[float], *, trial_id: str, attempt: int, treatment: Treatment, response: str
) -> Steady | None:
    """Whether a trial came to a steady state within itself, from one value a second; None without a value.

    Seconds follow each other closely, so Kendall's and Mann-Whitney's p are too small: a trial is called drifting or
    warming up too easily, steady not. No other number rests on it.
    """
    if not series:
        return None
    verdict, cut, detail = judge(series, "second")
    mean_all, rest = sum(series) / len(series), list(series[cut or 0 :])
    return Steady(
        trial_id=trial_id, attempt=attempt, treatment=treatment, response=response, unit=UNITS[response],
        n=len(series), detected_cut=cut, verdict=verdict, detail=detail,
        change_detected=None if cut is None else _change(sum(rest) / len(rest), mean_all),
    )  # fmt: skip
