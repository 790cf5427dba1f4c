"""Scalability laws over cluster sizes (universal, Amdahl, linear, broken line), each parameter with its interval.

Universal scalability law: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), N. J. Gunther, Guerrilla Capacity
Planning, Springer 2007, chapter 4; sigma is contention, kappa coherency. Amdahl's law is kappa = 0, linear scaling
sigma = kappa = 0. The broken line X(n) = min(a n, c) stands for a throughput that something other than the cluster
caps, as a load generator: the universal law would read it as a peak with a contention below 0.

A law is refused if there are too few sizes, or if its contention is shown to be below 0, which no share of work is: an
interval that is refused for that held no contention that the law allows, so refusals take nothing from coverage. Both
loads reduce to one regression. Saturated: n / X(n) = (1 / lambda)(1 + sigma (n - 1) + kappa n (n - 1)). A single
closed-loop client saturates nothing, so X is 1 / s(n), and the law is that of the service demand: s(n) = s1 (1 + sigma
(n - 1) + kappa n (n - 1)), fitted to the time per operation.

A law of throughput is one of the cluster only if the load saturates it. In a closed loop N threads keep n nodes, each
one queue, busy for at most N / (N + n - 1) of the time if operations go to them at random (balanced job bounds:
J. Zahorjan, K. C. Sevcik, D. L. Eager, B. Galler, Communications of the ACM 25(2), 1982); nodes that serve several
operations at once are busy for less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame, counts_nodes
from steelyard.analysis.inference.estimates import LARGEST_LOG
from steelyard.analysis.inference.law_fit import (
    PARAMETERS,
    Interval,
    Law,
    aicc,
    bootstrap,
    columns,
    lack_of_fit,
    peak,
    residual_sd,
    solve,
)  # fmt: skip
from steelyard.analysis.row import HIDDEN, NO_UNIT, Column, InUnitOrNone, Levels, MeasuredRow, P, RatioOrNone
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.analysis.wording import capital
from steelyard.format import with_interval
from steelyard.heavy import np, pl
from steelyard.model.estimate import Estimate
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.study import Study
from steelyard.model.value import Value


class CurvePoint(Value):
    """A fitted law at one size, in the unit of what was fitted, with a pointwise interval of the fitted mean."""

    level: float
    value: float
    low: float | None = None
    high: float | None = None


class LawFit(MeasuredRow):
    """A scalability law fitted over cluster sizes, or the reason why not."""

    law: Law
    """Linear, Amdahl's, or the universal scalability law (usl); broken: throughput rises in proportion up to a knee and
    is the same beyond."""
    load: Literal["saturated", "single"]
    """Saturated: throughput over nodes is fitted. Single: one closed-loop client thread; the time of an
    operation is."""
    factor: str
    """Factor of sizes."""
    others: Levels
    n: int
    """Start means fitted."""
    sizes: int
    """Different sizes."""
    base: InUnitOrNone = None
    """The law's value at one node: throughput of one node, or time of one operation on one node."""
    sigma: RatioOrNone = None
    """Contention: the share of work that cannot be done in parallel."""
    kappa: RatioOrNone = None
    """Coherency: the cost of nodes agreeing with each other, per pair."""
    peak_nodes: Annotated[Estimate | None, Column(unit="nodes")] = None
    """Size of the largest throughput, sqrt((1 - sigma) / kappa); none if the law has none."""
    knee_nodes: Annotated[Estimate | None, Column(unit="nodes")] = None
    """Size from which the throughput of a broken line stays the same."""
    ceiling: InUnitOrNone = None
    """Throughput of a broken line beyond its knee."""
    residual_sd: RatioOrNone = None
    """Standard deviation of the residuals of the logarithm."""
    aicc: Annotated[float | None, Column(unit=NO_UNIT, head="AICc")] = None
    """Akaike's criterion, corrected for small n; of laws fitted to the same points the smaller is better."""
    weight: Annotated[float | None, Column(unit="0 to 1")] = None
    """Akaike's weight among the laws fitted to the same points: how far the data speak for this one."""
    lack_of_fit_p: P = None
    """p of the F test that the sizes' means lie on the law; none if no size has two starts that differ."""
    threads: int | None = None
    """Threads of the closed loop; none in an open loop."""
    busy_at_most: Annotated[float | None, Column(unit="as a fraction")] = None
    """Share of the time for which this many threads can keep the nodes of the largest size busy, N / (N + n - 1), if
    operations go to them at random; none if a single thread drives the load."""
    refusal: str = ""
    """Why nothing was fitted; empty if something was."""
    curve: Annotated[tuple[CurvePoint, ...], HIDDEN] = ()

    @property
    def parameters(self) -> dict[str, Estimate]:
        """The law's parameters by name: `base`, and those that it has of the others."""
        names = ("base", "sigma", "kappa", "knee_nodes", "ceiling")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


THREADS = ("load.threads", "threads")
Load = Literal["saturated", "single"]

SATURATED = 0.95
"""Share of the time for which nodes must be busy, for their throughput to count as what they can carry."""
LAWS: tuple[Law, ...] = ("usl", "amdahl", "linear", "broken")
NAMES = {"usl": "the universal scalability law", "amdahl": "Amdahl's law", "linear": "linear scaling",
         "broken": "a broken line"}  # fmt: skip
FEWEST_SIZES = 5
SIZES_OF_PLATEAU = 2
CURVE_POINTS = 60


def fit_law(
    points: Sequence[tuple[float, float]], law: Law, load: Load, *, factor: str = "nodes",
    others: Treatment | None = None, response: str = "execution_time_ms",
    confidence: float = 0.95, rng: np.random.Generator,
) -> LawFit:  # fmt: skip
    """Fit a law to (size, value) of each start: throughput in operations/s (saturated) or ms per operation (single).

    Intervals by bootstrap-t over residuals (`inference.law_fit`), of the base on its logarithm; by t where the points
    lie on the law or draws cannot be fitted, and `method` says so. Refused below five sizes, or where start means are
    too few for an error.
    """
    sizes = [size for size, _ in points]
    unit = "ms/operation" if load == "single" else "operations/s"
    about: dict[str, Any] = {
        "law": law, "load": load, "factor": factor, "others": dict(others or {}), "response": response, "unit": unit,
        "n": len(points), "sizes": len(set(sizes)),
    }  # fmt: skip
    refusal = _refusal(sizes, [value for _, value in points], 1 + len(PARAMETERS[law]))
    if refusal:
        return LawFit(**about, refusal=refusal)
    demands = [value if load == "single" else size / value for size, value in points]
    solution = solve(law, sizes, demands)
    interval = Interval(solution, bootstrap(columns(law, np.asarray(sizes, dtype=float)), solution, rng), confidence)
    method = f"least squares on logarithms of start means, {interval.how}"

    def estimate(ends: tuple[float, float, float], of: str) -> Estimate:
        value, *limits = ends
        return Estimate.of(value, (min(limits), max(limits)), of, confidence, len(points), method)

    def raised(ends: tuple[float, float, float], of: str, sign: float = 1.0) -> Estimate:
        value, low, high = (math.exp(min(sign * one, LARGEST_LOG)) for one in ends)
        return estimate((value, low, high), of)

    own = {name: estimate(interval.of_parameter(at), "") for at, name in enumerate(PARAMETERS[law], start=1)}
    if law == "broken":
        slope = np.asarray([-1.0, 1.0])
        own = {
            "knee_nodes": raised(interval.of_parameter(1), "nodes"),
            "ceiling": raised(interval.of(lambda theta: theta @ slope, lambda theta: slope), unit),
        }
    if refusal := _beyond_bounds(law, sizes, own):
        return LawFit(**about, sigma=own.get("sigma"), refusal=refusal)
    return LawFit(
        **about,
        **own,
        base=raised(interval.of_parameter(0), unit, 1.0 if load == "single" else -1.0),
        residual_sd=residual_sd(solution, confidence),
        aicc=aicc(len(points), solution),
        lack_of_fit_p=lack_of_fit(sizes, demands, solution),
        peak_nodes=peak(interval, len(points), max(sizes)) if law == "usl" else None,
        curve=tuple(_curve(load, interval, min(sizes), max(sizes))),
    )


def _refusal(sizes: Sequence[float], values: Sequence[float], parameters: int) -> str:
    different = len(set(sizes))
    if different < FEWEST_SIZES:
        return f"A scalability law needs at least {FEWEST_SIZES} sizes; there are {different}."
    if len(sizes) <= parameters:
        return f"{len(sizes)} start means are too few for the {parameters} parameters of a law and an error."
    if min(values) <= 0 or min(sizes) < 1:
        return "Sizes and values of a scalability law must be positive."
    return ""


def _beyond_bounds(law: Law, sizes: Sequence[float], own: Mapping[str, Estimate]) -> str:
    """Why a fitted law is none: the interval of its contention lies below 0, or a knee is not between the sizes."""
    if law == "broken":
        knee = own["knee_nodes"]
        if (knee.low or 0.0) <= min(sizes) or len({size for size in sizes if size > knee.value}) < SIZES_OF_PLATEAU:
            return "A broken line is refused: throughput does not rise first and then stay the same over two sizes."
    sigma = own.get("sigma")
    if sigma is not None and sigma.high is not None and sigma.high < 0:
        return (
            f"{capital(NAMES[law])} is refused: its contention, {with_interval(sigma)}, lies below 0, and no share of "
            "work does."
        )
    return ""


def _curve(load: Load, interval: Interval, low: float, high: float) -> list[CurvePoint]:
    steps = int(min(CURVE_POINTS, max(2, 4 * (high - low) + 1)))
    points = []
    for size in np.linspace(low, high, steps):
        ends = [math.exp(min(max(one, -LARGEST_LOG), LARGEST_LOG)) for one in interval.of_height(float(size))]
        value, *limits = ends if load == "single" else [size / end for end in ends]
        points.append(
            CurvePoint(level=float(size), value=float(value), low=float(min(limits)), high=float(max(limits)))
        )
    return points


def law_points(
    frame: TrialFrame, load: Load, factor: str, others: Treatment, *, capacity: bool = False
) -> list[tuple[float, float]]:
    """(size, mean over the trials of a start) of each start: operations/s, or ms per operation. `capacity`: those that
    starts found, operations/s."""
    response = CAPACITY if capacity else "execution_time_ms"
    rows, value = frame.values(response, others), pl.col(response)
    if not capacity:
        rows = rows.filter((pl.col("operations") > 0) & (value > 0))
        value = value / pl.col("operations")
        value = value if load == "single" else 1000 / value
    rows = frame.numbered(rows.filter(pl.col(factor).is_not_null()), factor)
    means = rows.group_by(factor, "start", maintain_order=True).agg(value.mean().alias("value"))
    return [(float(size), float(mean)) for size, _, mean in means.iter_rows()]


def laws(
    frame: TrialFrame, factor: str, load: Load, rng: np.random.Generator, confidence: float = 0.95,
    response: str | None = None,
) -> tuple[LawFit, ...]:  # fmt: skip
    """Every law for each combination of the other factors; refusals included. `response`: capacity; else the load's."""
    named = response or ("execution_time_ms" if load == "single" else "throughput_per_s")
    fits = []
    for others in frame.others(factor):
        points = law_points(frame, load, factor, others, capacity=response == CAPACITY)
        fits += [
            fit_law(points, law, load, factor=factor, others=others, response=named, confidence=confidence, rng=rng)
            for law in LAWS
            if load == "saturated" or law != "broken"
        ]
    return tuple(fits)


def laws_of_load(frame: TrialFrame, study: Study, size: str | None, rng: np.random.Generator) -> tuple[LawFit, ...]:
    """Laws over nodes: of service demand for one closed-loop thread, of throughput for more; refused in open loop."""
    if size is None or not counts_nodes(frame, study, size):
        return ()
    if study.analysis.response == CAPACITY:
        return laws(frame, size, "saturated", rng, study.analysis.confidence, CAPACITY)
    if study.load.is_open or "load.schedule" in frame.factors:
        refusal = (
            "The throughput of an open loop is set by its schedule, not by the cluster: no law can be fitted to it."
        )
        return tuple(
            LawFit(law=law, load="saturated", factor=size, others=others, response="throughput_per_s",
                   unit="operations/s", n=0, sizes=0, refusal=refusal)
            for others in frame.others(size)
            for law in LAWS
        )  # fmt: skip
    fits: list[LawFit] = []
    threads = next((name for name in THREADS if name in frame.factors), None)
    loads: dict[Load, TrialFrame] = {}
    if threads is None:
        loads["single" if study.load.threads == 1 else "saturated"] = frame
    else:
        loads["single"] = _only(frame, pl.col(threads) == 1)
        loads["saturated"] = _only(frame, pl.col(threads) > 1)
    for load, part in loads.items():
        fits += laws(part, size, load, rng, study.analysis.confidence)
    return tuple(_with_threads(fit, part_threads(fit, threads, study), loads[fit.load]) for fit in fits)


def part_threads(fit: LawFit, factor: str | None, study: Study) -> int:
    """Threads that drove the load of a fit: the level of the factor of threads, otherwise those of the study."""
    level = fit.others.get(factor) if factor is not None else None
    return int(level) if isinstance(level, int | float) else study.load.threads


def _with_threads(fit: LawFit, threads: int, frame: TrialFrame) -> LawFit:
    sizes = [size for size, _ in law_points(frame, fit.load, fit.factor, fit.others)]
    busy = threads / (threads + max(sizes) - 1) if fit.load == "saturated" and sizes else None
    return fit.model_copy(update={"threads": threads, "busy_at_most": busy})


def unsaturated(fits: Sequence[LawFit], response: str) -> list[str]:
    """Sentence on laws of throughput whose load did not saturate the largest cluster."""
    del response
    fitted = [fit for fit in fits if not fit.refusal and fit.busy_at_most is not None and fit.threads]
    low = [fit for fit in fitted if (fit.busy_at_most or 1.0) < SATURATED]
    if not low:
        return []
    worst = min(low, key=lambda fit: fit.busy_at_most or 1.0)
    largest = max(point.level for point in worst.curve)
    needed = math.ceil(SATURATED / (1 - SATURATED) * (largest - 1))
    return [
        f"The load did not saturate the larger clusters: {worst.threads} threads keep {largest:g} nodes busy for at "
        f"most {worst.busy_at_most:.0%} of the time. So the fitted law understates what they can carry, and its "
        f"contention is too large; {needed:,} threads or more would do."
    ]


def _only(frame: TrialFrame, where: pl.Expr) -> TrialFrame:
    return replace(frame, data=frame.data.filter(where))


def weighed(fits: Sequence[LawFit]) -> tuple[LawFit, ...]:
    """The laws with Akaike weights among those of the same points and load that have an AICc.

    exp(-d / 2) / sum of exp(-d / 2), d the AICc less the least (K. P. Burnham, D. R. Anderson, Model Selection and
    Multimodel Inference, 2nd edition, Springer 2002, section 2.9).
    """
    groups: dict[tuple[object, ...], list[float]] = {}
    for fit in fits:
        if fit.aicc is not None:
            groups.setdefault(same_points(fit), []).append(fit.aicc)
    weighted = []
    for fit in fits:
        among = groups.get(same_points(fit), [])
        weight = None
        if fit.aicc is not None and len(among) > 1:
            least = min(among)
            weight = math.exp((least - fit.aicc) / 2) / sum(math.exp((least - one) / 2) for one in among)
        weighted.append(fit.model_copy(update={"weight": weight}))
    return tuple(weighted)


def same_points(fit: LawFit) -> tuple[object, ...]:
    """Key of laws that were fitted to the same points."""
    return (fit.load, fit.factor, *sorted((name, str(level)) for name, level in fit.others.items()))


def drawn(fits: Sequence[LawFit]) -> list[LawFit]:
    """The law in figures of each line: the broken line where it outweighs the universal law, otherwise the latter."""
    groups: dict[tuple[object, ...], list[LawFit]] = {}
    for fit in fits:
        if fit.law in ("usl", "broken") and fit.curve:
            groups.setdefault(same_points(fit), []).append(fit)
    return [max(group, key=lambda fit: fit.weight or 0.0) for group in groups.values()]


STATISTIC = Statistic(
    name="law",
    row=LawFit,
    title="Scalability laws over sizes",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: weighed(laws_of_load(context.sized, context.study, context.size, context.generator())),
    sentences=unsaturated,
    order=30,
    sentence_order=15,
    without_size=True,
)
