"""Tables of load tests: 3,000 random true ones in which nothing is found, and the same with a slip, which is found.

Every number is computed from a real sample, or from unrounded operations and times, and rounded as people round.
Headings, percentiles and their definition, layout and units vary.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steelyard.reference.audit import csv_input
from steelyard.reference.audit.finding import Audit
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import Rounding
from tests.unit.reference.audit.test_bounds import METHODS

TABLES = 1000
"""Of each of three kinds."""
PLANTED = 60
"""Tables of each kind with one slip."""

Row = dict[str, str]
Names = dict[str, Callable[[float], str]]

COUNTS = ("n", "N", "count", "samples", "# Samples", "sample size", "n samples", "number of samples")
HEADS: dict[str, tuple[str, ...]] = {
    "mean": ("mean", "Average", "avg_latency_ms", "AverageLatency(ms)", "Mean resp. time [ms]", "latency mean", "μ"),
    "sd": ("std", "Std. Dev.", "stddev (ms)", "std_dev", "latency stdev", "StdDev", "σ"),
    "min": ("min", "Min", "min_latency_ms", "MinLatency(ms)", "minimum"),
    "max": ("max", "Max", "max_latency_ms", "MaxLatency(ms)", "latency max", "100%"),
}  # fmt: skip
PERCENTILES: Names = {
    "p{}": lambda p: f"p{p:g}", "P_{}": lambda p: f"P_{p:g}".replace(".", "_"), "{}th": lambda p: f"{p:g}th",
    "{}%": lambda p: f"{p:g}%", "{}% Line": lambda p: f"{p:g}% Line", "p({})": lambda p: f"p({p:g})",
    "{}thPercentileLatency(ms)": lambda p: f"{p:g}thPercentileLatency(ms)", ".{}": lambda p: f"{p / 100:g}"[1:],
    "percentile_{}": lambda p: f"percentile_{p:g}".replace(".", "_"),
    "latency p{} (ms)": lambda p: f"latency p{p:g} (ms)",
    "perc_{}": lambda p: f"perc_{p:g}".replace(".", "_"), "{}th pct": lambda p: f"{p:g}th pct",
    "R": lambda p: {25.0: "1st Qu.", 75.0: "3rd Qu."}.get(p, f"latency {p:g}%"),
    "R's names": lambda p: {25.0: "X1st.Qu.", 75.0: "X3rd.Qu."}.get(p, f"p{p:g}"),
    "words": lambda p: {25.0: "lower quartile", 75.0: "Upper Quartile"}.get(p, f"{p:g} percentile"),
}  # fmt: skip


def audited(path: Path, rows: list[Row], layout: int = 0, separator: str = ",") -> Audit:
    """Wide, long, or transposed; with decimal commas where semicolons are between the fields."""
    names = list(rows[0])
    lines = [names, *([row[name] for name in names] for row in rows)]
    if layout == 1:
        lines = [[names[0], "statistic", "value"],
                 *([row[names[0]], name, row[name]] for row in rows for name in names[1:])]  # fmt: skip
    elif layout == 2:
        lines = [list(column) for column in zip(*lines, strict=True)]
        lines[0][0] = ""
    if separator == ";":
        lines = [lines[0], *([field.replace(".", ",") if field[-1:].isdigit() and field[:1].isdigit() else field
                              for field in line] for line in lines[1:])]  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows(lines)
    return csv_input.audit(path, Conventions(), Rounding())


def sample(rng: np.random.Generator) -> np.ndarray:
    n = int(10 ** rng.uniform(0.5, 4.3))
    scale = 10 ** rng.uniform(-0.5, 3)
    values = (
        rng.lognormal(0, rng.uniform(0.05, 1.5), n), rng.exponential(1, n), rng.gamma(rng.uniform(0.3, 20), 1, n),
        np.where(rng.random(n) < 0.02, 50.0, 1.0) * rng.uniform(0.5, 1.5, n), np.full(n, 1.0),
        rng.integers(1, 9, n).astype(float),
    )  # fmt: skip
    return values[int(rng.integers(len(values)))] * scale


def latencies(rng: np.random.Generator) -> tuple[list[Row], dict[str, str], int]:
    """Rows of summaries, the heading of each statistic, and the decimals."""
    heads = {name: str(rng.choice(them)) for name, them in HEADS.items()}
    heads["count"] = str(rng.choice(COUNTS))
    shares = sorted(rng.choice((25, 50, 75, 90, 95, 98, 99, 99.9, 99.99), int(rng.integers(1, 7)), replace=False))
    form = PERCENTILES[str(rng.choice(list(PERCENTILES)))]
    heads |= {f"p{share:g}": form(float(share)) for share in shares}
    if rng.random() < 0.3:  # as often, not everything is printed
        for name in rng.choice(list(heads), int(rng.integers(1, 3)), replace=False):
            del heads[str(name)]
    decimals, method, ddof = int(rng.integers(0, 4)), str(rng.choice(METHODS)), int(rng.integers(2))
    order = ["op", *(str(name) for name in rng.permutation(list(heads)))]
    rows = []
    for op in ("read", "update", "scan")[: int(rng.integers(1, 4))]:
        values = sample(rng)
        true = {"mean": values.mean(), "sd": values.std(ddof=ddof), "min": values.min(), "max": values.max()}
        marks = np.quantile(values, [share / 100 for share in shares], method=method)
        true |= dict(zip((f"p{share:g}" for share in shares), marks, strict=True))
        texts = {name: f"{value:.{decimals}f}" for name, value in true.items()} | {"count": str(len(values)), "op": op}
        rows.append({heads.get(name, name): texts[name] for name in order})
    return rows, heads, decimals


def failures_apart(rng: np.random.Generator) -> list[Row]:
    """As wrk counts: of completed operations only, with failures beside them, more of them at times."""
    return throughputs(rng, apart=True)


def throughputs(rng: np.random.Generator, apart: bool = False) -> list[Row]:
    """Operations, time and rate, with failures and their share."""
    unit, factor = [("time (s)", 1.0), ("RunTime(ms)", 1e3), ("duration_s", 1.0), ("elapsed [min]", 1 / 60),
                    ("seconds", 1.0)][int(rng.integers(5))]  # fmt: skip
    rate, by = [("throughput_per_s", 1.0), ("Throughput(ops/sec)", 1.0), ("kops/s", 1e3), ("op/s", 1.0),
                ("requests per second", 1.0), ("tps", 1.0)][int(rng.integers(6))]  # fmt: skip
    ops, failed = [("operations", "errors"), ("total ops", "failed"), ("Request Count", "Failure Count"),
                   ("# requests", "timeouts")][int(rng.integers(4))]  # fmt: skip
    share, hundred = [("error rate (%)", 100.0), ("share_percent", 100.0), ("failure rate", 1.0), ("%", 100.0),
                      ("fraction", 1.0)][int(rng.integers(5))]  # fmt: skip
    if share in ("error rate (%)", "failure rate") and failed == "timeouts":
        share, hundred = "timeout rate", 1.0
    digits = [int(rng.integers(low, 5)) for low in (0, 1, 1)]
    rows = []
    for run in range(int(rng.integers(1, 5))):
        count, took = int(10 ** rng.uniform(1, 7)), 10 ** rng.uniform(0.3, 3.5)
        bad = int(count * (rng.uniform(0, 2) if apart else rng.uniform(0, 0.5) ** 3))
        numbers = (took * factor, count / took / by, hundred * bad / (count + bad * apart))
        texts = [f"{value:.{places}f}" for value, places in zip(numbers, digits, strict=True)]
        rows.append({"run": f"r{run}", ops: str(count), unit: texts[0], rate: texts[1], failed: str(bad),
                     share: texts[2] + ("%" if share == "%" else "")})  # fmt: skip
    return rows


def scalings(rng: np.random.Generator) -> list[Row]:
    """Time or throughput, speed-up and efficiency on more and more nodes."""
    nodes = str(rng.choice(("nodes", "threads", "# cores", "cluster_size", "workers", "N")))
    rate = bool(rng.random() < 0.4)
    measure = str(
        rng.choice(("throughput (ops/s)", "op/s", "tps") if rate else ("time (s)", "duration_s", "mean (ms)"))
    )
    gain = str(rng.choice(("speedup", "Speed-up", "speed_up", "relative speedup")))
    share, hundred = [("efficiency", 1.0), ("efficiency (%)", 100.0), ("Parallel Efficiency", 1.0),
                      ("efficiency_percent", 100.0)][int(rng.integers(4))]  # fmt: skip
    digits = [int(rng.integers(low, 4)) for low in (0, 1, 1)]
    serial = rng.uniform(0, 0.3)
    sizes = (1, 2, 4, 8, 16)[int(rng.random() < 0.2) :]
    times = [10 ** rng.uniform(2, 4)]
    times += [times[0] * (serial + (1 - serial) * sizes[0] / n) * rng.uniform(0.9, 1.1) for n in sizes[1:]]
    rows = []
    for n, took in zip(sizes, times, strict=True):
        s = times[0] / took
        numbers = (1e4 / took if rate else took, s, hundred * s / n * sizes[0])
        texts = (f"{value:.{places}f}" for value, places in zip(numbers, digits, strict=True))
        rows.append(dict(zip((nodes, measure, gain, share), (str(n), *texts), strict=True)))
    return rows


@pytest.mark.parametrize("layout", [0, 1, 2])
def test_nothing_is_invented_in_true_summaries(tmp_path: Path, layout: int) -> None:
    rng = np.random.default_rng(71 + layout)
    checks = 0
    for _ in range(TABLES // 3 + 1):
        rows, _, _ = latencies(rng)
        found = audited(tmp_path / "t.csv", rows, layout, str(rng.choice((",", ";", "\t"))))
        assert [one for one in found.findings if one.weight == "contradiction"] == [], (rows, layout)
        checks += sum(found.made.values())
    assert checks > 10 * TABLES / 3


@pytest.mark.parametrize(("make", "tables"), [(throughputs, TABLES // 2), (failures_apart, TABLES // 2),
                                             (scalings, TABLES)])  # fmt: skip
def test_nothing_is_invented_in_what_follows(
    tmp_path: Path, make: Callable[[np.random.Generator], list[Row]], tables: int
) -> None:
    rng = np.random.default_rng(81)
    for _ in range(tables):
        rows = make(rng)
        found = audited(tmp_path / "t.csv", rows)
        assert found.findings == (), rows
        assert sum(found.made.values()) >= len(rows) - 1, (rows, found.left_out)


def changed(rows: list[Row], at: int, column: str, value: float) -> list[Row]:
    text = rows[at][column]
    decimals = len(text.rstrip("%").partition(".")[2])
    return [{**row, column: f"{value:.{decimals}f}"} if row is rows[at] else row for row in rows]


def test_slips_in_summaries_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(91)
    planted = dict.fromkeys(("above max", "below min", "out of order", "mean", "sd"), 0)
    while min(planted.values()) < PLANTED:
        rows, heads, decimals = latencies(rng)
        at, half = int(rng.integers(len(rows))), 10.0**-decimals
        row = {name: float(rows[at][text]) for name, text in heads.items()}
        inner = sorted((float(name[1:]), name) for name in heads if name[0] == "p" and name[1:] != "100")
        slips = []
        if inner and "max" in row:
            slips.append(
                ("above max", str(rng.choice([name for _, name in inner])), row["max"] * 1.1 + 3 * half, "order")
            )
            slips.append(("mean", "mean", row["max"] * 1.2 + 3 * half, "mean"))
        if inner and "min" in row and row["min"] > 4 * half:
            slips.append(("below min", inner[0][1], row["min"] * 0.5 - half, "order"))
        if len(inner) > 1 and row[inner[0][1]] > 4 * half:
            slips.append(("out of order", inner[-1][1], row[inner[0][1]] * 0.7 - 2 * half, "order"))
        if "max" in row and "min" in row and "sd" in row:
            slips.append(("sd", "sd", (row["max"] - row["min"] + 2 * half) * 0.75 + half, "deviation"))
        for what, name, value, kind in slips:
            if name in heads:
                planted[what] += 1
                slip = changed(rows, at, heads[name], value)
                found = audited(tmp_path / "t.csv", slip, int(rng.integers(3)))
                assert kind in {one.kind for one in found.findings}, (what, slip)


@pytest.mark.parametrize(
    ("make", "columns"),
    [(throughputs, {3: "throughput", 5: "share"}), (scalings, {2: "speed-up", 3: "efficiency"})],
)
def test_slips_in_what_follows_are_found(
    tmp_path: Path, make: Callable[[np.random.Generator], list[Row]], columns: dict[int, str]
) -> None:
    rng = np.random.default_rng(101)
    planted = 0
    while planted < PLANTED:
        rows = make(rng)
        at, behind = len(rows) - 1, list(rows[0])[2 if make is throughputs else 1]
        if any(len(row[behind].replace(".", "").lstrip("0")) < 3 for row in rows):
            continue  # rounding hides a slip of a third
        planted += 1
        for column, kind in columns.items():
            name = list(rows[0])[column]
            value = float(rows[at][name].rstrip("%"))
            wrong = value * 1.3 + 3 * 10.0 ** -len(rows[at][name].rstrip("%").partition(".")[2])
            if kind == "share":
                wrong = value + 0.5 if value < 50 else value * 0.6  # a fraction, or one that is no percentage either
            slip = changed(rows, at, name, wrong)
            kinds = {one.kind for one in audited(tmp_path / "t.csv", slip).findings}
            assert kinds & {kind, "bounds"}, (kind, slip)


@pytest.mark.parametrize("n", [100, 10_000, 10_001, 250_000, 3_000_000_000])
def test_the_mean_is_bounded_at_every_count(tmp_path: Path, n: int) -> None:
    path = tmp_path / "t.csv"
    for mean, kinds in (("25", {"mean"}), ("4.0", set()), ("2.2", {"mean"})):
        path.write_text(f"n,min,median,max,mean\n{n},1.0,4.4,20,{mean}\n")
        assert {one.kind for one in csv_input.audit(path, Conventions(), Rounding()).findings} == kinds
