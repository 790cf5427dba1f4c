"""Coverage of what is said of clusters that change while they are measured: censored times, before and after."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
from scipy import special

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import censored, estimates
from steelyard.analysis.inference.censored import Watched
from steelyard.analysis.statistic import AroundActivity
from steelyard.analysis.statistics.activity_response import effect_of, rows_of_activity
from steelyard.analysis.statistics.elasticity import row_of, with_mean_of_factors
from steelyard.analysis.treatments import Treatment
from steelyard.judging.activity_windows import ActivityWindow, WindowName, delayed
from steelyard.judging.elasticity import Steps, elasticity
from steelyard.judging.membership import Span
from steelyard.model.responses.scaling import BEYOND, NODE_SECONDS
from tools.coverage.planted import Numbers, frame_of
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use, held

CENSORED = "Censored times"
ELASTICITY = "Measures of elasticity"
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
    yield from _elastic()
    yield from _effects()
    for n in (5, 10):
        for change in (0.0, 0.1):
            about = f"drift −5% in every trial, effect {change:+.0%}; logarithms 2%"
            yield Case(
                CHANGES, "t on logarithms over blocks: `against_control`", about, f"{n}", _controlled(n, change),
                "covers" if change else "errs", beside=(("to before alone: `ratio`", "not used"),),
            )  # fmt: skip
            about = (
                f"a policy acts on the response, mean of 10 s +1.5 sd; logarithms 20% a second, effect {change:+.0%}"
            )
            yield Case(
                CHANGES, "control at the policy's own time: `against_control`", about, f"{n}", _chosen(n, change),
                "covers" if change else "errs",
                beside=(("control in the same seconds", "not used"), ("to before alone: `ratio`", "not used")),
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


LENGTH_S = 150.0
DEMAND: Steps = ((0.0, 3), (30.0, 5), (90.0, 3))
KEPT: Steps = ((0.0, 4),)
"""The control: a cluster that keeps its size."""
STEP_S, SHAPE = 8.0, 16.0
"""A node joins or leaves after a gamma time with this mean and shape, one after the other."""
TRUE_PERCENT: Mapping[str, float] = {
    "theta_under_percent": 100 * STEP_S * (2 / 5 + 1 / 5) / LENGTH_S,
    "theta_over_percent": 100 * STEP_S * (1 / 3 + 2 / 3 + 1 / 3) / LENGTH_S,
    "tau_under_percent": 100 * 2 * STEP_S / LENGTH_S,
    "tau_over_percent": 100 * 3 * STEP_S / LENGTH_S,
}


def _elastic() -> Iterator[Case]:
    """A load that needs 3, 5 and again 3 nodes; clusters begin with 4."""
    about = f"joins and leaves take {STEP_S:g} s, gamma, cv {SHAPE**-0.5:.0%}"
    names = tuple(TRUE_PERCENT)
    beside: tuple[tuple[str, Use], ...] = tuple((f"t over starts: `{name}`", "ours") for name in names[1:])
    for n in (3, 5, 10):
        yield Case(ELASTICITY, f"t over starts: `{names[0]}`", about, f"{n}", _measured(n), share=0.25, beside=beside)
        for against in ("a control that keeps 4 nodes", "the same policy"):
            truth, name = f"{about}; against {against}", "t on logarithms over blocks: `elastic_speedup`"
            yield Case(ELASTICITY, name, truth, f"{n}", _sped_up(n, "same" in against), share=0.25)


def _supplies(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[Steps]:
    """Nodes in service of each trial of a policy that follows the demand."""
    for first, a, b, c, d in rng.gamma(SHAPE, STEP_S / SHAPE, (*shape, 5)).reshape(-1, 5).tolist():
        yield (0.0, 4), (first, 3), (30 + a, 4), (30 + a + b, 5), (90 + c, 4), (90 + c + d, 3)


def _of_policies(rng: np.random.Generator, n: int, *, alike: bool) -> TrialFrame:
    """A study of n blocks: one trial of the control and one of the policy in each, with their measures."""
    policy = list(_supplies(rng, (n,)))
    control = list(_supplies(rng, (n,))) if alike else [KEPT] * n
    frame = with_measures(frame_of(np.ones((2, n, 1)), ((3, "A"), (4, "A"))), (*control, *policy))
    return with_mean_of_factors(frame)


def with_measures(frame: TrialFrame, supplies: Sequence[Steps]) -> TrialFrame:
    """A frame with the measures of these supplies; its trials are sorted by block, the supplies by treatment."""
    measures = [elasticity(DEMAND, supply, LENGTH_S)._asdict() for supply in supplies]
    rows = [measures[start + size * (len(supplies) // 2)] for start in range(len(supplies) // 2) for size in (0, 1)]
    columns = [pl.Series(name, [row[name] for row in rows]) for name in rows[0]]
    nothing = [pl.lit(0.0).alias(name) for name in (BEYOND, NODE_SECONDS)]
    return replace(frame, data=frame.data.sort("block", "nodes").with_columns(*columns, *nothing))


def _treatment(nodes: int) -> Treatment:
    return {"nodes": nodes, "workload": "A"}


def _measured(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for _ in range(studies):
            row = row_of(_of_policies(rng, n, alike=False), _treatment(4), None, {}, CONFIDENCE)
            yield tuple(held(getattr(row, name), truth) for name, truth in TRUE_PERCENT.items())

    return draw


@cache
def _true_speedup() -> float:
    """Ratio of the means on logarithms of the control and the policy, here over 20,000 trials."""

    def log_mean(supplies: Iterable[Steps]) -> float:
        each = [elasticity(DEMAND, supply, LENGTH_S)._asdict() for supply in supplies]
        return statistics.mean(sum(math.log(one[name]) for name in TRUE_PERCENT) / 4 for one in each)

    return math.exp(log_mean([KEPT]) - log_mean(_supplies(np.random.default_rng(1), (20_000,))))


def _sped_up(n: int, alike: bool) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        truth = 1.0 if alike else _true_speedup()
        for _ in range(studies):
            row = row_of(_of_policies(rng, n, alike=alike), _treatment(4), _treatment(3), {}, CONFIDENCE)
            yield held(row.elastic_speedup, truth)

    return draw


def _effect(n: int, delta: float, correlation: float) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        before, more = rng.standard_normal((2, studies, n))
        after = correlation * before + math.sqrt(1 - correlation**2) * more + delta
        for pairs in zip(before.tolist(), after.tolist(), strict=True):
            both = [(f"s{place}", *pair) for place, pair in enumerate(zip(*pairs, strict=True))]
            yield tuple(held(effect_of(both, CONFIDENCE, paired=paired), delta) for paired in (True, False))

    return draw


def _chosen(n: int, change: float) -> Draw:
    """Trials of n blocks with a control each. A policy acts where the mean over 10 s is first 1.5 sd too high, so
    before is high by chance. Trials in which it does not act within 60 s have no activity."""
    units = {(f"t{place}", 1): (f"s{place}", place) for place in range(n)}
    length_s, last_s, window_s, sd = 100, 60, 10, 0.2

    def logs_of(rng: np.random.Generator) -> tuple[Numbers, int | None]:
        logs = rng.normal(0, sd, length_s)
        sums = np.concatenate([[0.0], np.cumsum(logs)])
        high = sums[window_s : last_s + 1] - sums[: last_s + 1 - window_s] > 1.5 * sd * math.sqrt(window_s)
        return logs, int(high.argmax()) + window_s if high.any() else None

    def value(logs: Numbers, spans: Sequence[Span]) -> dict[str, float]:
        inside = np.concatenate([logs[int(span.begun_s) : int(span.ended_s)] for span in spans])
        return {RESPONSE: float(np.exp(inside).mean())}

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for _ in range(studies):
            around: dict[bool, list[AroundActivity]] = {True: [], False: []}
            for trial in units:
                logs, acts_s = logs_of(rng)
                while acts_s is None:
                    logs, acts_s = logs_of(rng)
                logs[acts_s:] += math.log1p(change)
                control, sham_s = logs_of(rng)
                for at_own_time, of_study in around.items():
                    delay_s = (None if sham_s is None else sham_s - acts_s) if at_own_time else 0
                    for name, span in zip(WINDOWS, (Span(0, acts_s), Span(acts_s, acts_s + 30)), strict=True):
                        window = ActivityWindow(1, "scale-out", 1, name, (span,))
                        spans = [] if delay_s is None else [delayed(window, delay_s, length_s)]
                        controls = [value(control, inside) for inside in spans]
                        of_study.append(AroundActivity(trial, window, value(logs, window.spans), controls))
            rows = {
                own_time: next(
                    row for row in rows_of_activity({}, of_study, units, CONFIDENCE) if row.window == "after"
                )
                for own_time, of_study in around.items()
            }
            estimated = rows[True].against_control, rows[False].against_control, rows[True].ratio
            yield tuple(held(one, 1 + change) for one in estimated)

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
