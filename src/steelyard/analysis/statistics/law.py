"""Scalability laws over cluster sizes (universal, Amdahl, linear), each parameter with its interval.

Universal scalability law: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), N. J. Gunther, Guerrilla Capacity
Planning, Springer 2007, chapter 4; sigma is contention, kappa coherency. Amdahl's law is kappa = 0, linear scaling
sigma = kappa = 0.

A law is refused if there are too few sizes. Both loads reduce to one regression. Saturated:
n / X(n) = (1 / lambda)(1 + sigma (n - 1) + kappa n (n - 1)). A single closed-loop client saturates nothing, so X
is 1 / s(n), and the law is that of the service demand:
s(n) = s1 (1 + sigma (n - 1) + kappa n (n - 1)), fitted to the time per operation.

A law of throughput is one of the cluster only if the load saturates it. In a closed loop N threads keep n nodes, each
one queue, busy for at most N / (N + n - 1) of the time if operations go to them at random (balanced job bounds:
J. Zahorjan, K. C. Sevcik, D. L. Eager, B. Galler, Communications of the ACM 25(2), 1982); nodes that serve several
operations at once are busy for less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.law_fit import PARAMETERS, Interval, Law, Solution, bootstrap, columns, solve
from steelyard.analysis.row import HIDDEN, NO_UNIT, Column, InUnitOrNone, Levels, P, RatioOrNone, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import NODES, Treatment
from steelyard.heavy import np, pl, stats
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


class LawFit(Row):
    """A scalability law fitted over cluster sizes, or the reason why not."""

    law: Literal["usl", "amdahl", "linear"]
    """Linear, Amdahl's, or the universal scalability law (usl)."""
    load: Literal["saturated", "single"]
    """Saturated: throughput over nodes is fitted. Single: one closed-loop client thread; the time of an
    operation is."""
    factor: str
    """Factor of sizes."""
    others: Levels
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
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
    """Size of the greatest throughput, sqrt((1 - sigma) / kappa); none where the law has none."""
    residual_sd: RatioOrNone = None
    """Standard deviation of the residuals of the logarithm."""
    aicc: Annotated[float | None, Column(unit=NO_UNIT, head="AICc")] = None
    """Akaike's criterion, corrected for small n; of laws fitted to the same points the smaller is better."""
    weight: Annotated[float | None, Column(unit="0 to 1")] = None
    """Akaike's weight among the laws fitted to the same points: how far the data speak for this one."""
    lack_of_fit_p: P = None
    """p of the F test that the sizes' means lie on the law; none where no size has two starts that differ."""
    threads: int | None = None
    """Threads of the closed loop; none in an open loop."""
    busy_at_most: Annotated[float | None, Column(unit="as a fraction")] = None
    """Share of the time for which so many threads can keep the nodes of the largest size busy, N / (N + n - 1), if
    operations go to them at random; none if a single thread drives the load."""
    refusal: str = ""
    """Why nothing was fitted; empty if something was."""
    curve: Annotated[tuple[CurvePoint, ...], HIDDEN] = ()

    @property
    def parameters(self) -> dict[str, Estimate]:
        """The law's parameters by name: `base`, and those that it has of `sigma` and `kappa`."""
        every = {"base": self.base, "sigma": self.sigma, "kappa": self.kappa}
        return {name: value for name, value in every.items() if value is not None}


THREADS = ("load.threads", "threads")
Load = Literal["saturated", "single"]

SATURATED = 0.95
"""Share of the time for which nodes must be busy, for their throughput to count as what they can carry."""
LAWS: tuple[Law, ...] = ("usl", "amdahl", "linear")
FEWEST_SIZES = 5
CURVE_POINTS = 60
FARTHEST = 1000.0
"""Ends of a peak are searched up to so many times the largest size."""
HALVINGS = 50
FLAT = 1e-9
"""Below this kappa x largest size squared, and above 1 less this sigma, there is no peak."""


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
        return Estimate(
            value=value, low=min(limits), high=max(limits), confidence=confidence, n=len(points), unit=of, method=method
        )

    sign = 1.0 if load == "single" else -1.0
    value, low, high = (math.exp(sign * min(one, 600.0)) for one in interval.of_parameter(0))
    parameters = {"base": estimate((value, low, high), unit)}
    for index, name in enumerate(PARAMETERS[law], start=1):
        parameters[name] = estimate(interval.of_parameter(index), "")
    return LawFit(
        **about,
        **parameters,
        residual_sd=_residual_sd(solution, confidence),
        aicc=_aicc(len(points), solution),
        lack_of_fit_p=_lack_of_fit(sizes, demands, solution),
        peak_nodes=_peak(interval, len(points), max(sizes)) if law == "usl" else None,
        curve=tuple(_curve(law, load, interval, min(sizes), max(sizes))),
    )


def _refusal(sizes: Sequence[float], values: Sequence[float], parameters: int) -> str:
    different = len(set(sizes))
    if different < FEWEST_SIZES:
        return f"A scalability law needs at least {FEWEST_SIZES} sizes; there are {different}."
    if len(sizes) <= parameters:
        return f"{len(sizes)} start means cannot carry {parameters} parameters and an error."
    if min(values) <= 0 or min(sizes) < 1:
        return "Sizes and values of a scalability law must be positive."
    return ""


def _aicc(n: int, solution: Solution) -> float | None:
    """Hurvich and Tsai 1989: n log(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), k including the error's variance."""
    k = len(solution.theta) + 1
    if n - k - 1 <= 0 or solution.exact:
        return None
    return n * math.log(solution.squares / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def _residual_sd(solution: Solution, confidence: float) -> Estimate:
    """sqrt(squares / degrees) of logarithms, with a chi-squared interval."""
    tail = (1 - confidence) / 2
    value, low, high = (
        math.sqrt(solution.squares / by)
        for by in (
            solution.degrees,
            float(stats.chi2.ppf(1 - tail, solution.degrees)),
            float(stats.chi2.ppf(tail, solution.degrees)),
        )
    )
    return Estimate(
        value=value, low=low, high=high, confidence=confidence, n=len(solution.residuals), unit="",
        method=f"standard deviation of residuals of the logarithm, chi-squared interval with {solution.degrees} "
        "degrees of freedom",
    )  # fmt: skip


def _lack_of_fit(sizes: Sequence[float], demands: Sequence[float], solution: Solution) -> float | None:
    """p of the F test for lack of fit of the law, against the pure error between starts of one size (N. R. Draper,
    H. Smith, Applied Regression Analysis, 3rd edition, section 2.1); None without starts of one size that differ."""
    groups: dict[float, list[float]] = {}
    for size, demand in zip(sizes, demands, strict=True):
        groups.setdefault(size, []).append(math.log(demand))
    pure = sum(float(np.sum((np.asarray(one) - np.mean(one)) ** 2)) for one in groups.values())
    pure_df = len(sizes) - len(groups)
    lack_df = solution.degrees - pure_df
    if pure_df < 1 or lack_df < 1 or math.sqrt(pure / len(sizes)) < FLAT:
        return None
    f = max(solution.squares - pure, 0.0) / lack_df / (pure / pure_df)
    return float(stats.f.sf(f, lack_df, pure_df))


def _peak(interval: Interval, n: int, largest: float) -> Estimate | None:
    """Size of the greatest throughput: all m for which 1 - sigma - kappa m^2 does not differ from 0 (Fieller)."""
    sigma, kappa = float(interval.solution.theta[1]), float(interval.solution.theta[2])
    if kappa * largest**2 <= FLAT or sigma >= 1 - FLAT:
        return None
    square = (1 - sigma) / kappa

    def holds(m: float) -> bool:
        slope = np.asarray([0.0, -1.0, -m])
        _, low, high = interval.of(lambda theta: 1 - theta[..., 1] - m * theta[..., 2], lambda theta: slope)
        return low <= 0 <= high

    most = (FARTHEST * largest) ** 2
    low = 0.0 if holds(0.0) else _end(holds, square, 0.0)
    high = None if square >= most or holds(most) else _end(holds, square, most)
    return Estimate(
        value=math.sqrt(square), low=math.sqrt(low), high=None if high is None else math.sqrt(high),
        confidence=interval.confidence, n=n, unit="nodes",
        method=f"sqrt((1 - sigma) / kappa), sizes at which the slope is not told from 0, {interval.how}"
        f"{'; no upper end: the law may have no peak' if high is None else ''}",
    )  # fmt: skip


def _end(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Bisection for the point where `holds` turns false, on logarithms if possible."""
    for _ in range(HALVINGS):
        middle = math.sqrt(inside * outside) if outside > 0 else inside / 2
        if outside == 0.0 and middle < FLAT:
            return 0.0
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
        if abs(inside - outside) < FLAT * max(inside, outside):
            break
    return inside


def _curve(law: Law, load: Load, interval: Interval, low: float, high: float) -> list[CurvePoint]:
    steps = int(min(CURVE_POINTS, max(2, 4 * (high - low) + 1)))
    points = []
    for size in np.linspace(low, high, steps):
        ends = [math.exp(min(max(one, -600.0), 600.0)) for one in interval.of_height(columns(law, np.asarray([size])))]
        value, *limits = ends if load == "single" else [size / end for end in ends]
        points.append(
            CurvePoint(level=float(size), value=float(value), low=float(min(limits)), high=float(max(limits)))
        )
    return points


def law_points(frame: TrialFrame, load: Load, factor: str, others: Treatment) -> list[tuple[float, float]]:
    """(size, mean over the trials of a start) of each start: operations/s, or ms per operation."""
    rows = frame.values("execution_time_ms", others).filter(
        pl.col(factor).is_not_null() & (pl.col("operations") > 0) & (pl.col("execution_time_ms") > 0)
    )
    per_operation = pl.col("execution_time_ms") / pl.col("operations")
    value = per_operation if load == "single" else 1000 / per_operation
    means = frame.numbered(rows, factor).group_by(factor, "start", maintain_order=True).agg(value.mean().alias("value"))
    return [(float(size), float(mean)) for size, _, mean in means.iter_rows()]


def capacity_points(frame: TrialFrame, factor: str, others: Treatment) -> list[tuple[float, float]]:
    """(size, mean over the trials of a start) of each start that found a capacity, operations/s."""
    rows = frame.values(CAPACITY, others).filter(pl.col(factor).is_not_null())
    mean = pl.col(CAPACITY).mean().alias("value")
    means = frame.numbered(rows, factor).group_by(factor, "start", maintain_order=True).agg(mean)
    return [(float(size), float(mean)) for size, _, mean in means.iter_rows()]


def laws(
    frame: TrialFrame, factor: str, load: Load, rng: np.random.Generator, confidence: float = 0.95
) -> tuple[LawFit, ...]:
    """Every law for each combination of the other factors; refusals included."""
    response = "execution_time_ms" if load == "single" else "throughput_per_s"
    return tuple(
        fit_law(law_points(frame, load, factor, others), law, load, factor=factor, others=others, response=response,
                confidence=confidence, rng=rng)
        for others in frame.others(factor)
        for law in LAWS
    )  # fmt: skip


def laws_of_load(frame: TrialFrame, study: Study, size: str | None, rng: np.random.Generator) -> tuple[LawFit, ...]:
    """Laws over nodes: of service demand for one closed-loop thread, of throughput for more; refused in open loop."""
    if size is None or not counts_nodes(frame, study, size):
        return ()
    if study.analysis.response == CAPACITY:
        return tuple(
            fit_law(capacity_points(frame, size, others), law, "saturated", factor=size, others=others,
                    response=CAPACITY, confidence=study.analysis.confidence, rng=rng)
            for others in frame.others(size)
            for law in LAWS
        )  # fmt: skip
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


def counts_nodes(frame: TrialFrame, study: Study, size: str) -> bool:
    """Whether a factor is the number of nodes, also under a name of its own: each level stands for the nodes that it
    sets."""
    numbers = frame.numbers.get(size, {})
    return size in NODES or (
        bool(numbers)
        and all(any(study.fields_of({size: at}).get(name) == nodes for name in NODES) for at, nodes in numbers.items())
    )


def part_threads(fit: LawFit, factor: str | None, study: Study) -> int:
    """Threads that drove the load of a fit: the level of the factor of threads, else those of the study."""
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


STATISTIC = Statistic(
    name="law",
    row=LawFit,
    title="Scalability laws over sizes",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: weighed(laws_of_load(context.frame, context.study, context.size, context.generator())),
    sentences=unsaturated,
    order=30,
    sentence_order=15,
    own_form=True,
    without_size=True,
)
