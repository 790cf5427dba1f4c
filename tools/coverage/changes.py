"""Coverage of what is said of clusters that change while they are measured: censored times, before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy import special

from steelyard.analysis.inference import censored, estimates
from steelyard.analysis.inference.censored import Watched
from steelyard.analysis.statistic import AroundActivity
from steelyard.analysis.statistics.activity_response import effect_of, rows_of_activity
from steelyard.judging.activity_windows import ActivityWindow, WindowName
from steelyard.judging.membership import Span
from tools.coverage.planted import Numbers
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use, held

CENSORED = "Censored times"
CHANGES = "Before and after a change of size"
TAU_S = 900.0
STARTS = (5, 10, 20)
RESPONSE = "response_ms_mean"
WINDOWS: tuple[WindowName, ...] = ("before", "after")

Times = Callable[[np.random.Generator, tuple[int, int]], Numbers]


def cases() -> Iterator[Case]:
    """Every cell of the two tables."""
    yield from _restricted()
    for n in STARTS:
        for p in (0.2, 0.5, 0.8):
            yield Case(CENSORED, "Clopper and Pearson: `share`", f"{p:.0%} happen", f"{n}", _share(n, p))
    for n in (3, 4, 5, 10, 20):
        about = f"identical systems; exponential, 400 s; cut at {TAU_S:.0f} s"
        share = 0.25 if n > 5 else 1.0
        yield Case(CENSORED, "permutation of starts: `p`", about, f"{n}", _permuted(n), "errs", share=share)
    yield from _effects()
    for n in (5, 10):
        for change in (0.0, 0.1):
            about = f"drift −5% in every trial, effect {change:+.0%}; logarithms 2%"
            yield Case(
                CHANGES, "t on logarithms over blocks: `against_control`", about, f"{n}", _controlled(n, change),
                "covers" if change else "errs", beside=(("to before alone: `ratio`", "not used"),),
            )  # fmt: skip


def _exponential(mean_s: float) -> Times:
    return lambda rng, shape: rng.exponential(mean_s, shape)


def _never_or_near(rng: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    return np.where(rng.random(shape) < 0.3, np.inf, rng.normal(430, 60, shape))


def _restricted() -> Iterator[Case]:
    truths: dict[str, tuple[float, Times]] = {
        f"exponential, {mean:,.0f} s": (mean * -math.expm1(-TAU_S / mean), _exponential(mean))
        for mean in (100.0, 400.0, 2000.0)
    }
    truths["normal, 430 s, sd 60 s"] = 430.0, lambda rng, shape: rng.normal(430, 60, shape)
    truths["30% never, others normal, 430 s, sd 60 s"] = 0.3 * TAU_S + 0.7 * 430, _never_or_near
    name = "t on the logit: `restricted_mean`"
    normal: tuple[tuple[str, Use], ...] = (("normal, Greenwood's variance", "not used"),)
    for words, (truth, times) in truths.items():
        for n in STARTS:
            about = f"{words}; cut at {TAU_S:.0f} s"
            yield Case(CENSORED, name, about, f"{n}", _cut(n, truth, times), beside=normal)
    for n in STARTS:
        about = "exponential, 400 s; watched for 300 to 900 s, up to where half were"
        yield Case(CENSORED, name, about, f"{n}", _watched_unequally(n))


def _watched(times: Sequence[float], until_s: Sequence[float], name: str = "s") -> list[Watched]:
    return [
        Watched(f"{name}{place}", end_s, after_s if after_s <= end_s else None)
        for place, (after_s, end_s) in enumerate(zip(times, until_s, strict=True))
    ]


def _cut(n: int, truth: float, times: Times) -> Draw:
    z = float(special.ndtri(0.5 + CONFIDENCE / 2))

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for study in np.maximum(times(rng, (studies, n)), 0.0).tolist():
            watched = _watched(study, [TAU_S] * n)
            mean = censored.restricted_mean(watched, TAU_S, CONFIDENCE)
            greenwood = float(np.minimum(study, TAU_S).std()) / math.sqrt(n)
            yield held(mean, truth), None if mean.low is None else abs(mean.value - truth) <= z * greenwood

    return draw


def _watched_unequally(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for times, until in zip(rng.exponential(400, (studies, n)), rng.uniform(300, TAU_S, (studies, n)), strict=True):
            watched = _watched(times.tolist(), until.tolist())
            tau_s = censored.watched_by_half(watched)
            yield held(censored.restricted_mean(watched, tau_s, CONFIDENCE), -400 * math.expm1(-tau_s / 400))

    return draw


def _share(n: int, p: float) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        by_count = [held(estimates.share(happened, n, CONFIDENCE), p) for happened in range(n + 1)]
        return (by_count[happened] for happened in rng.binomial(n, p, studies).tolist())

    return draw


def _permuted(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for a, b in rng.exponential(400, (studies, 2, n)).tolist():
            tested = censored.difference(_watched(a, [TAU_S] * n, "a"), _watched(b, [TAU_S] * n, "b"), rng)
            yield None if tested is None else tested[1] >= 1 - CONFIDENCE

    return draw


def _effects() -> Iterator[Case]:
    for delta in (0.0, 1.0, 3.0):
        for correlation in (0.0, 0.5, 0.9):
            for n in (3, 5, 10):
                about = f"before and after correlate by {correlation:g}; normal, {delta:g} sd"
                yield Case(
                    CHANGES, "noncentral t of pairs: `cohens_d`", about, f"{n}", _effect(n, delta, correlation),
                    beside=(("of independent samples: `cohens_d_published`", "replication"),),
                )  # fmt: skip


def _effect(n: int, delta: float, correlation: float) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        before, more = rng.standard_normal((2, studies, n))
        after = correlation * before + math.sqrt(1 - correlation**2) * more + delta
        for pairs in zip(before.tolist(), after.tolist(), strict=True):
            both = [(f"s{place}", *pair) for place, pair in enumerate(zip(*pairs, strict=True))]
            yield tuple(held(effect_of(both, CONFIDENCE, paired=paired), delta) for paired in (True, False))

    return draw


def _controlled(n: int, change: float) -> Draw:
    """Trials of n blocks with a control each. `ratio` is judged as if it were the effect."""
    units = {(f"t{place}", 1): (f"s{place}", place) for place in range(n)}

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        logs = math.log(0.95) + rng.normal(0, 0.02, (studies, 2, n))
        logs[:, 0] += math.log1p(change)
        for own, controls in np.exp(logs).tolist():
            around = [
                AroundActivity(
                    trial, ActivityWindow(1, "scale-out", 1, name, (Span(0.0, 20.0),)),
                    {RESPONSE: own[place] if name == "after" else 1.0},
                    [{RESPONSE: controls[place] if name == "after" else 1.0}],
                )
                for place, trial in enumerate(units)
                for name in WINDOWS
            ]  # fmt: skip
            after = next(row for row in rows_of_activity({}, around, units, CONFIDENCE) if row.window == "after")
            yield held(after.against_control, 1 + change), held(after.ratio, 1 + change)

    return draw
