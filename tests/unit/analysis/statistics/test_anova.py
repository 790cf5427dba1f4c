"""Analysis of variance against certified digits (NIST), published split plots, statsmodels and the comparisons."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from steelyard.analysis.inference.variance_table import crossed, table
from steelyard.analysis.statistics.anova import anova, interactions
from steelyard.analysis.statistics.one_way import one_ways
from tests.unit.analysis.made import cell, frame, record

TIME = "execution_time_ms"
NIST = Path(__file__).resolve().parents[3] / "fixtures" / "nist"

OATS = {
    1: [111, 130, 157, 174, 117, 114, 161, 141, 105, 140, 118, 156],
    2: [61, 91, 97, 100, 70, 108, 126, 149, 96, 124, 121, 144],
    3: [68, 64, 112, 86, 60, 102, 89, 96, 89, 129, 132, 124],
    4: [74, 89, 81, 122, 64, 103, 132, 133, 70, 89, 104, 117],
    5: [62, 90, 100, 116, 80, 82, 94, 126, 63, 70, 109, 99],
    6: [53, 74, 118, 113, 89, 82, 86, 104, 97, 99, 119, 121],
}
"""Yates 1935: block to yields of three varieties (whole plots), each at four levels of nitrogen; MASS's `oats`."""


def certified(name: str):
    """(groups, values, degrees of freedom, sums of squares, F) as NIST prints them."""
    text = (NIST / f"{name}.dat").read_text(encoding="ascii")
    lines = text.splitlines()
    between = next(line for line in lines if line.startswith("Between"))
    within = next(line for line in lines if line.startswith("Within"))
    df_b, ss_b, _, f = re.findall(r"[\d.]+(?:E[-+]\d+)?", between)
    df_w, ss_w, _ = re.findall(r"[\d.]+(?:E[-+]\d+)?", within)
    start = next(place for place, line in enumerate(lines) if line.startswith("Data:") and place > 40)
    rows = [line.split() for line in lines[start + 1 :] if line.split()]
    return (
        [row[0] for row in rows],
        [float(row[1]) for row in rows],
        (int(df_b), int(df_w)),
        (float(ss_b), float(ss_w)),
        float(f),
    )


# Digits that can be right: 13 constant leading digits of SmLs07 leave three of the data's own in a double.
@pytest.mark.parametrize(
    ("name", "close"),
    [("SiRstv", 1e-12), ("AtmWtAg", 1e-9), ("SmLs01", 1e-13), ("SmLs04", 1e-8), ("SmLs07", 1e-2)],
)
def test_certified_values_of_one_way_analysis(name, close):
    groups, values, (df_b, df_w), (ss_b, ss_w), f = certified(name)
    found = table(values, {"instrument": groups}, [("instrument",)])
    (line,) = found.lines
    assert (found.n, line.df, found.error_df) == (len(values), df_b, df_w)
    assert line.squares == pytest.approx(ss_b, rel=close)
    assert found.error_squares == pytest.approx(ss_w, rel=close)
    assert line.f == pytest.approx(f, rel=close)


def oats():
    """Values whose logarithms are the yields: what is analysed is what was published."""
    records = []
    for block, yields in OATS.items():
        for variety, nitrogen in itertools.product(range(3), range(4)):
            value = math.exp(yields[4 * variety + nitrogen])
            records.append(record(value, nodes=variety + 1, workload="ABCD"[nitrogen], start=block, order=nitrogen + 1))
    return frame(records)


def test_the_two_errors_of_a_published_split_plot():
    """R's summary(aov(Y ~ N * V + Error(B / V), oats)), as MASS prints it."""
    found = honest(oats())
    printed = {  # degrees of freedom, sum of squares over single plots, F, p
        ("starts", "block"): (5, 15875, None, None),
        ("starts", "nodes"): (2, 1786, 1.485, 0.272),
        ("starts", "error"): (10, 6013, None, None),
        ("within starts", "workload"): (3, 20020.4, 37.686, 2.46e-12),
        ("within starts", "nodes x workload"): (6, 322, 0.303, 0.932),
        ("within starts", "start x workload"): (45, 7969, None, None),
    }
    assert found.keys() == printed.keys()
    for key, (df, squares, f, p) in printed.items():
        plots = 4 if key[0] == "starts" else 1  # ours are squares of start means, each over four plots
        assert found[key].df == df
        assert found[key].sum_of_squares * plots == pytest.approx(squares, abs=0.51)
        if f is not None:
            assert found[key].f == pytest.approx(f, abs=5e-4)
            assert stats.f.sf(found[key].f, df, found[key].error_df) == pytest.approx(p, rel=2e-3)


def honest(frame):
    """The terms on logarithms, by stratum and name."""
    return {
        (one.stratum, one.term): one for one in anova(frame, TIME) if (one.form, one.scale) == ("honest", "logarithms")
    }


PULP = {
    200: [30, 34, 29, 28, 31, 31, 31, 35, 32],
    225: [35, 41, 26, 32, 36, 30, 37, 40, 34],
    250: [37, 38, 33, 40, 42, 32, 41, 39, 39],
    275: [36, 42, 36, 41, 40, 40, 40, 44, 45],
}
"""D. C. Montgomery, Design and Analysis of Experiments, section 14.4: tensile strength of paper by temperature; three
replicates of three methods of preparing pulp (whole plots)."""


def pulp():
    records = []
    for order, (temperature, values) in enumerate(PULP.items(), start=1):
        for place, value in enumerate(values):
            block, method = place // 3 + 1, place % 3 + 1
            records.append(record(math.exp(value), nodes=method, workload=str(temperature), start=block, order=order))
    return frame(records)


def test_montgomerys_split_plot():
    """R's summary(aov(y ~ method * temperature + Error(replicate / method))) of the textbook's data."""
    found = honest(pulp())
    printed = {  # degrees of freedom, sum of squares over single plots, F, p
        ("starts", "block"): (2, 77.55, None, None),
        ("starts", "nodes"): (2, 128.39, 7.078, 0.0485),
        ("starts", "error"): (4, 36.28, None, None),
        ("within starts", "workload"): (3, 434.08, 36.427, 7.45e-08),
        ("within starts", "nodes x workload"): (6, 75.17, 3.154, 0.0271),
        ("within starts", "start x workload"): (18, 71.50, None, None),
    }
    assert found.keys() == printed.keys()
    for key, (df, squares, f, p) in printed.items():
        plots = 4 if key[0] == "starts" else 1
        assert found[key].df == df
        assert found[key].sum_of_squares * plots == pytest.approx(squares, abs=0.006)
        if f is not None:
            assert found[key].f == pytest.approx(f, abs=6e-4)
            assert stats.f.sf(found[key].f, df, found[key].error_df) == pytest.approx(p, rel=2e-3)
            assert "degrees" in found[key].method


def test_an_interaction_is_said_before_main_effects():
    terms = anova(pulp(), TIME)
    term = next(one for one in terms if one.term == "nodes x workload" and one.p is not None and one.form == "honest")
    (said,) = interactions([term.model_copy(update={"p": 0.04, "p_holm": 0.08})])
    assert term.epsilon == pytest.approx(0.697, abs=1e-3)
    assert said.startswith(
        "The effect of nodes may depend on workload (on logarithms, F(4.18, 12.5) = 3.15, p = 0.040, with Holm's "
        "correction p = 0.080"
    )
    assert "level by level" in said
    assert interactions(anova(oats(), TIME)) == []


def test_a_plot_that_is_missing_leaves_whole_starts_out_and_says_so():
    """Start means of other treatments than the rest have would not be comparable."""
    of = pulp()
    short = type(of)(of.data.filter(pl.int_range(pl.len()) > 0), of.factors, of.hard, 0)
    found = [one for one in anova(short, TIME) if one.form == "honest"]
    assert "1 starts without every combination of workload are left out" in found[0].note
    assert found[0].term == "block", "two whole blocks of three methods are enough"
    within = next(one for one in found if one.term == "workload")
    assert (within.n, within.df, within.error_df) == (8, 3, 15)


def test_trials_of_a_start_do_not_replicate_a_hard_factor():
    """Starts differ by far more than their trials: the published form sees a sure effect where there is none."""
    rng = np.random.default_rng(2)
    records = []
    for nodes, effects in ((1, (-4, 3, 0, 1)), (3, (5, -1, 6, 0))):
        records += cell([[100 + e + z for z in rng.normal(0, 0.1, 15)] for e in effects], nodes=nodes)
    found = {one.form: one for one in anova(frame(records), TIME) if one.term == "nodes" and one.p is not None}
    assert found["honest"].error_df == 3  # four complete blocks, two sizes
    assert found["published"].error_df == 118
    assert found["published"].p < 0.001 < found["honest"].p


def test_one_start_has_no_error_term_and_says_so():
    records = [one for nodes in (1, 3) for one in cell([[5.0, 6.0, 7.0 + nodes]], nodes=nodes)]
    found = anova(frame(records), TIME)
    (honest,) = [one for one in found if one.form == "honest"]
    assert (honest.f, honest.p, honest.df) == (None, None, None)
    assert "no error term" in honest.note
    assert any(one.form == "published" and one.f is not None for one in found)
    over_starts = next(one for one in one_ways(frame(records), TIME) if one.over == "start means")
    assert over_starts.f is None
    assert "no error term" in over_starts.note


def test_unequal_cells_as_statsmodels_has_them():
    pytest.importorskip("pandas")
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 3, 40), rng.integers(0, 2, 40)
    y = 3.0 * a + 2 * b + a * b + rng.normal(0, 1, 40)
    found = table(list(y), {"a": list(a), "b": list(b)}, crossed(["a", "b"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = anova_lm(smf.ols("y ~ C(a) * C(b)", data=pd.DataFrame({"y": y, "a": a, "b": b})).fit(), typ=2)
    assert [line.squares for line in found.lines] == pytest.approx(list(oracle["sum_sq"])[:-1])
    assert [line.p for line in found.lines] == pytest.approx(list(oracle["PR(>F)"])[:-1])
    assert found.error_squares == pytest.approx(float(oracle["sum_sq"].iloc[-1]))


def test_partial_eta_squared_holds_its_value_and_the_corrected_p_is_never_smaller():
    for one in anova(oats(), TIME):
        if one.eta_squared is not None:
            assert one.eta_squared.low <= one.eta_squared.value <= one.eta_squared.high
        if one.p_holm is not None:
            assert one.p <= one.p_holm <= 1


def test_ranks_stand_beside_the_analysis_of_variance():
    """In whole blocks Friedman's; where too few blocks are whole, those of independent starts."""
    rng = np.random.default_rng(1)
    groups = [[float(v) for v in rng.normal(10 + nodes, 1, 5)] for nodes in (1, 2, 3)]
    records = [one for nodes, values in enumerate(groups, 1) for one in cell([[v] for v in values], nodes=nodes)]
    found = next(one for one in one_ways(frame(records), TIME) if one.over == "start means")
    assert found.rank_test == "Friedman"
    assert found.rank_p == pytest.approx(stats.friedmanchisquare(*groups).pvalue)
    assert (found.n, found.df, found.error_df) == (15, 2, 8)
    whole = honest(frame(records))["starts", "nodes"]
    assert (found.f, found.p) == pytest.approx((whole.f, whole.p))
    apart = [
        one for place, of in enumerate((groups[0], groups[1][:1]), 1) for one in cell([[v] for v in of], nodes=place)
    ]
    found = next(one for one in one_ways(frame(apart), TIME) if one.over == "start means")
    assert (found.rank_test, found.p) == (
        "Mann-Whitney", pytest.approx(stats.f_oneway(np.log(groups[0]), np.log(groups[1][:1])).pvalue)
    )  # fmt: skip


def test_levels_that_share_their_starts_are_ranked_within_them():
    values = {"A": [5.0, 9.0, 7.0, 6.0], "C": [6.0, 9.5, 8.0, 6.5], "E": [7.0, 11.0, 8.5, 9.0]}
    records = [one for name, starts in values.items() for one in cell([[v] for v in starts], workload=name)]
    made = frame(records)
    assert one_ways(made, TIME) == ()  # workloads are different questions while another factor exists
    made = type(made)(made.data.drop("nodes"), {"workload": ("A", "C", "E")}, (), 0)
    found = next(one for one in one_ways(made, TIME) if one.over == "start means")
    assert found.rank_test == "Friedman"
    assert found.rank_p == pytest.approx(stats.friedmanchisquare(*values.values()).pvalue)
    assert (found.df, found.error_df) == (2, 6)


def test_contrasts_of_two_factors_within_starts_have_the_published_correction():
    """S. E. Maxwell, H. D. Delaney, Designing Experiments and Analyzing Data, 2nd edition, tables 12.5 and 12.6: ten
    people, reaction times at three angles without and with noise; corrected degrees of freedom as the R package afex
    prints them of the same data (`aov_ez`)."""
    records = [
        record(math.exp(value / 100), nodes=angle, workload=noise, start=person, order=place)
        for person, values in enumerate(RUNS, 1)
        for place, (value, (noise, angle)) in enumerate(zip(values, itertools.product("AB", (1, 2, 3)), strict=True), 1)
    ]
    made = frame(records)
    found = honest(type(made)(made.data.with_columns(start=pl.format("p{}", "block"), block=1), made.factors, (), 0))
    printed = {  # sums of squares, degrees of freedom, F; corrected degrees of freedom
        "nodes": (289920, 64080, 2, 18, 40.72, 1.92, 17.31), "workload": (285660, 76140, 1, 9, 33.77, 1, 9),
        "nodes x workload": (105120, 20880, 2, 18, 45.31, 1.81, 16.27),
    }  # fmt: skip
    for name, (squares, error, df, error_df, f, corrected, corrected_error) in printed.items():
        term, of_error = found["within starts", name], found["within starts", f"start x {name}"]
        assert (term.sum_of_squares * 1e4, of_error.sum_of_squares * 1e4) == pytest.approx((squares, error))
        assert (term.df, term.error_df, term.f) == (df, error_df, pytest.approx(f, abs=5e-3))
        epsilon = 1.0 if term.epsilon is None else term.epsilon
        assert (epsilon * df, epsilon * error_df) == pytest.approx((corrected, corrected_error), abs=5e-3)
        assert term.p == pytest.approx(stats.f.sf(term.f, epsilon * df, epsilon * error_df))
    assert found["within starts", "workload"].epsilon is None


RUNS = (
    (420, 420, 480, 480, 600, 780), (420, 480, 480, 360, 480, 600), (480, 480, 540, 660, 780, 780),
    (420, 540, 540, 480, 780, 900), (540, 660, 540, 480, 660, 720), (360, 420, 360, 360, 480, 540),
    (480, 480, 600, 540, 720, 840), (480, 600, 660, 540, 720, 900), (540, 600, 540, 480, 720, 780),
    (480, 420, 540, 540, 660, 780),
)  # fmt: skip


@pytest.mark.parametrize("blocks", [3, 5])
def test_two_levels_in_whole_blocks_are_the_paired_comparison(blocks):
    """F = t^2 of pairs of logarithms of start means, and so one p for one hypothesis; all pairs, too."""
    rng = np.random.default_rng(blocks)
    means = 100 * np.exp(0.1 * rng.normal(size=(1, blocks)) + 0.03 * rng.normal(size=(2, blocks)))
    starts = [[[float(v) for v in mean * rng.uniform(0.9, 1.1, 3)] for mean in level] for level in means]
    made = frame([one for nodes, of in zip((1, 3), starts, strict=True) for one in cell(of, nodes=nodes)])
    of_pairs = stats.ttest_rel(*(np.log(np.mean(of, axis=1)) for of in starts)).pvalue
    assert honest(made)["starts", "nodes"].p == pytest.approx(of_pairs, rel=1e-9)
    assert next(one.p for one in one_ways(made, TIME) if one.over == "start means") == pytest.approx(of_pairs, rel=1e-9)


def test_an_equal_ratio_everywhere_is_no_interaction():
    """3 nodes take 1.2 times as long in every workload, whose times differ tenfold: in milliseconds that is an
    interaction in every study, on logarithms in few."""
    rng = np.random.default_rng(25)
    bases, said, measured = np.array([300.0, 300, 600, 3000]), 0, 0
    for _ in range(60):
        times = np.stack([bases, 1.2 * bases])[:, None] * np.exp(
            0.03 * rng.normal(size=(2, 3, 1)) + 0.02 * rng.normal(size=(2, 3, 4))
        )
        records = [
            record(float(times[at, start, place]), nodes=nodes, workload=name, start=start + 1, order=place + 1)
            for at, nodes in enumerate((1, 3)) for start in range(3) for place, name in enumerate("ABCD")
        ]  # fmt: skip
        terms = anova(frame(records), TIME)
        said += len(interactions(terms))
        squares = {one.term: one for one in terms if (one.form, one.scale) == ("honest", "as measured")}
        assert all(one.p is None and one.f is None for one in squares.values())
        quotient = squares["nodes x workload"].mean_square / squares["start x workload"].mean_square
        measured += stats.f.sf(quotient, 3, 12) < 0.05
    assert said <= 6
    assert measured == 60


def test_values_that_are_not_all_above_0_are_analysed_as_measured():
    records = [one for nodes in (1, 3) for one in cell([[nodes - 2.0], [2.0], [1.0 + nodes]], nodes=nodes)]
    found = [one for one in anova(frame(records), TIME) if one.form == "honest" and one.term == "nodes"]
    assert [(one.scale, one.p is None) for one in found] == [("as measured", False)]


def test_a_covariate_is_fitted_before_the_terms():
    """statsmodels' type II analysis of covariance; the place within a block is such a line."""
    pytest.importorskip("pandas")
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(8)
    block, level = np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8)
    place = np.concatenate([rng.permutation(3) + 1.0 for _ in range(8)])
    y = level + 0.5 * place + rng.normal(size=24)
    columns = {"level": list(level), "block": list(block), "place": list(place)}
    found = table(list(y), columns, [("block",), ("level",)], covariates=["place"])
    data = pd.DataFrame({"y": y, **columns})
    oracle = anova_lm(smf.ols("y ~ place + C(block) + C(level)", data=data).fit(), typ=2)
    assert [line.p for line in found.lines] == pytest.approx(list(oracle.loc[["C(block)", "C(level)"], "PR(>F)"]))
    assert found.error_df == oracle.loc["Residual", "df"] == 13


def test_nothing_to_analyse_is_nothing():
    assert anova(frame(cell([[5.0, 6.0]])), TIME) == ()
    assert one_ways(frame(cell([[5.0, 6.0]])), TIME) == ()
