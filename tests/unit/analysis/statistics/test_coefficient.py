"""Several numeric factors at once: against statsmodels, and split into the two levels of a split plot."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistics.coefficient import coefficients
from steelyard.analysis.statistics.other_regression import other_regressions
from steelyard.analysis.statistics.regression import regress
from tests.unit.analysis.made import cell, frame, record

TIME = "execution_time_ms"


def chosen(of: TrialFrame, form: str, scale: str, stratum: str = "") -> dict:
    """The coefficients of one form and scale, by their term."""
    found = [one for one in coefficients(of, TIME) if (one.form, one.scale) == (form, scale)]
    return {one.term: one for one in found if stratum in ("", one.stratum)}


def made(rng: np.random.Generator, starts: int = 3, start_sd: float = 5.0, trials: int = 2) -> TrialFrame:
    """100 + 10 nodes + 3 threads + 20 for workload C; starts differ by far more than trials."""
    records = []
    for nodes in (1, 3, 6):
        for start in range(1, starts + 1):
            effect = rng.normal(0, start_sd)
            order = 0
            for threads in (1, 4, 8):
                for workload in ("A", "C"):
                    for replicate in range(1, trials + 1):
                        order += 1
                        value = 100 + 10 * nodes + 3 * threads + 20 * (workload == "C") + effect + rng.normal(0, 1)
                        records.append(
                            record(
                                value, nodes=nodes, workload=workload, start=start, replicate=replicate, order=order,
                                extra={"load.threads": threads},
                            )
                        )  # fmt: skip
    factors = {"nodes": (1, 3, 6), "workload": ("A", "C"), "load.threads": (1, 4, 8)}
    return TrialFrame.build(records, factors, ("nodes",), 0)


def test_trials_as_independent_are_statsmodels_ordinary_least_squares():
    of = made(np.random.default_rng(1))
    found = chosen(of, "published", "as measured")
    rows = of.values(TIME)
    x = np.column_stack([rows["nodes"], (rows["workload"] == "C").to_numpy() * 1.0, rows["load.threads"]])
    oracle = sm.OLS(rows[TIME].to_numpy(), sm.add_constant(x)).fit()
    assert list(found) == ["intercept", "nodes", "workload = C", "load.threads"]
    assert [one.value.value for one in found.values()] == pytest.approx(list(oracle.params))
    assert [one.std_err for one in found.values()] == pytest.approx(list(oracle.bse))
    assert found["nodes"].r_squared == pytest.approx(oracle.rsquared)


def test_what_varied_within_starts_is_held_against_what_is_within_them():
    """The oracle: least squares with an indicator of every start."""
    of = made(np.random.default_rng(2), trials=1)
    rows = of.values(TIME)
    starts = np.column_stack([(rows["start"] == one).to_numpy() * 1.0 for one in rows["start"].unique()])
    x = np.column_stack([(rows["workload"] == "C").to_numpy() * 1.0, rows["load.threads"], starts])
    for scale, y in (("as measured", rows[TIME]), ("logarithms", rows[TIME].log())):
        oracle, found = sm.OLS(y.to_numpy(), x).fit(), chosen(of, "honest", scale, "within starts")
        for place, name in enumerate(("workload = C", "load.threads")):
            logarithm = scale == "logarithms"
            value = found[name].value
            assert (np.log(value.value) if logarithm else value.value) == pytest.approx(oracle.params[place])
            assert found[name].std_err == pytest.approx(oracle.bse[place])
            assert found[name].error_df == int(oracle.df_resid)
            assert found[name].p == (pytest.approx(oracle.pvalues[place]) if logarithm else None)
            assert logarithm == ("on logarithms" in value.method)


def test_a_hard_factor_rests_on_starts_in_their_blocks():
    """The oracle: least squares of start means with an indicator of every block."""
    of = made(np.random.default_rng(3))
    honest, published = chosen(of, "honest", "as measured", "starts")["nodes"], chosen(of, "published", "as measured")
    assert (honest.n, honest.error_df, published["nodes"].n) == (9, 5, 108)
    assert honest.std_err > 1.5 * published["nodes"].std_err
    assert honest.value.low < 10 < honest.value.high
    cells = of.values(TIME).group_by("block", "nodes", "workload", "load.threads").agg(pl.col(TIME).mean().log())
    starts = cells.group_by("block", "nodes", maintain_order=True).agg(pl.col(TIME).mean())
    x = np.column_stack([starts["nodes"], *((starts["block"] == block).to_numpy() * 1.0 for block in (1, 2, 3))])
    oracle = sm.OLS(starts[TIME].to_numpy(), x).fit()
    logs = chosen(of, "honest", "logarithms", "starts")["nodes"]
    assert (np.log(logs.value.value), logs.p) == pytest.approx((oracle.params[0], oracle.pvalues[0]))
    assert logs.value.unit == "times per step"


def test_one_start_a_level_and_factors_that_went_together_are_refused_in_words():
    single = coefficients(made(np.random.default_rng(4), starts=1), TIME)
    assert "started once" in next(one.note for one in single if one.stratum == "starts")
    records = [
        record(100.0 + n + t, nodes=n, start=s, order=1, extra={"load.threads": 2 * n})
        for n, t in ((1, 0), (3, 1), (6, 2))
        for s in (1, 2)
    ]
    factors = {"nodes": (1, 3, 6), "workload": ("A",), "load.threads": (2, 6, 12)}
    together = coefficients(TrialFrame.build(records, factors, ("nodes", "load.threads"), 0), TIME)
    assert {one.note for one in together if one.value is None} == {
        "load.threads varied together with the factors before it: they cannot be separated"
    }


def test_one_numeric_factor_has_its_lines_and_nothing_else():
    assert coefficients(frame(cell([[5.0, 6.0]]) + cell([[7.0, 8.0]], nodes=3)), TIME) == ()


def test_a_factor_that_varied_within_starts_has_the_mean_of_their_slopes():
    of = made(np.random.default_rng(5))
    lines = other_regressions(of, TIME, "nodes")
    assert {one.factor for one in lines} == {"load.threads"}
    assert len(lines) == 6
    one = next(line for line in lines if line.others == {"nodes": 3, "workload": "A"})
    rows = of.values(TIME, one.others)
    slopes = [
        np.polyfit(part["load.threads"].to_numpy(), part[TIME].to_numpy(), 1)[0] for part in rows.partition_by("start")
    ]
    assert one.honest is not None
    assert one.honest.slope.value == pytest.approx(np.mean(slopes))
    assert one.honest.std_err == pytest.approx(np.std(slopes, ddof=1) / np.sqrt(3))
    assert (one.honest.n, one.starts) == (3, 3)
    assert one.honest.slope.low < 3 < one.honest.slope.high


def test_a_single_start_gives_such_a_slope_no_error():
    found = regress(made(np.random.default_rng(6), starts=1), TIME, "load.threads", {"nodes": 1, "workload": "A"})
    assert found.honest is None
    assert "no error term for its slope" in found.note
    assert found.published is not None
