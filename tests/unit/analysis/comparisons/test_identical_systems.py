from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons import identical_systems
from steelyard.analysis.statistics import comparison, noise_floor
from steelyard.analysis.statistics.comparison import Comparison, comparisons
from steelyard.analysis.statistics.noise_floor import ResponseFloor
from steelyard.analysis.statistics.overall import overall
from steelyard.analysis.statistics.validity import Validity
from steelyard.analysis.tables import tables
from steelyard.judging.noise_floor import (
    Circumstances,
    FoundFloor,
    KeptFloor,
    Spread,
    in_words,
    mismatch,
    unlike,
)
from steelyard.model.estimate import Estimate
from steelyard.model.study import SAME_LABELS, Study
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis.made import VOIDED, cell, frame, record, study

TIME = "execution_time_ms"
MACHINE = {"cpu_model": "a", "cores": "2", "kernel": "6.1", "architecture": "x86_64"}
HELD = Circumstances(
    machines=(MACHINE,), site="local", system="cassandra", engine="agent", loop="closed", nodes=1,
    warmed_up=False, settings={"load.threads": "1", "load.operations": "600", "workload.name": "ycsb-a"},
)  # fmt: skip


def spread(between: float, within: float, *, starts: int = 12, trials: int = 3, response: str = TIME) -> Spread:
    """Mean squares as a study with these components would have them if chance did nothing."""
    return Spread(
        response=response, starts=starts, trials=starts * trials,
        between_mean_square=trials * between**2 + within**2, between_degrees=starts - 1,
        within_mean_square=within**2, within_degrees=starts * (trials - 1), trials_a_start=trials,
    )  # fmt: skip


def kept(*spreads: Spread, made_s: float = 1.79e9) -> KeptFloor:
    return KeptFloor(study="noise-floor", made_s=made_s, pairs=6, holds_for=HELD, spreads=spreads)


def found(*spreads: Spread) -> FoundFloor:
    return FoundFloor(floor=kept(*spreads), why="")


def same(starts: int = 6, trials: int = 3) -> Study:
    return study(factors={}, design={"kind": "same", "starts": starts, "trials": trials})


def pairs(seed: int, *, blocks: int = 6, trials: int = 3, between: float = 0.03, within: float = 0.02):
    """Trials of a study of identical systems: a start of either label in each block."""
    rng = np.random.default_rng(seed)
    made = []
    for block in range(1, blocks + 1):
        for place, label in enumerate(rng.permutation(SAME_LABELS)):
            effect = rng.normal(0, between)
            for trial in range(1, trials + 1):
                value = 1000 * math.exp(effect + rng.normal(0, within))
                one = record(value, start=2 * block + place, order=trial, replicate=trial, block=block)
                made.append(one.model_copy(update={"treatment": {"label": str(label)}, "hard": ("label",)}))
    return made


def test_mean_squares_and_components_are_those_of_a_mixed_model():
    trials = [[100.0, 103.0, 99.0], [110.0, 108.0, 113.0], [95.0, 96.5, 94.0], [104.0, 101.0, 107.0]]
    rows = frame(cell(trials)).data
    squares = identical_systems.spread_of(rows, TIME)
    logs = np.log(trials)
    between = 3 * np.var(logs.mean(axis=1), ddof=1)
    within = np.mean(np.var(logs, axis=1, ddof=1))
    assert (squares.between_degrees, squares.within_degrees, squares.trials_a_start) == (3, 8, pytest.approx(3))
    assert squares.between_mean_square == pytest.approx(between)
    assert squares.within_mean_square == pytest.approx(within)
    data = pd.DataFrame({"y": logs.ravel(), "start": np.repeat(range(4), 3)})
    fit = smf.mixedlm("y ~ 1", data, groups=data["start"]).fit(reml=True)  # equal numbers: the same as mean squares
    assert (between - within) / 3 == pytest.approx(float(np.asarray(fit.cov_re)[0, 0]), rel=1e-3)
    assert within == pytest.approx(fit.scale, rel=1e-3)


def test_planted_components_are_found():
    records = pairs(4, blocks=60, trials=4, between=0.04, within=0.02)
    results = analyse(records, same(60, 4), seed=1)
    result = results.of(Validity)[0].floor
    (floor,) = [one for one in results.of(ResponseFloor) if one.response == TIME]
    assert result.source == floor.source == "this study"
    assert floor.between_cv.low <= 0.04 <= floor.between_cv.high
    assert floor.within_cv.low <= 0.02 <= floor.within_cv.high
    assert floor.between_cv.value == pytest.approx(0.04, rel=0.2)
    assert (floor.pairs, floor.starts, floor.trials) == (60, 120, 480)
    assert floor.pair_ratio.low <= 1 <= floor.pair_ratio.high
    assert "This study compares identical systems" in result.sentence


def test_the_floor_is_the_prediction_interval_by_hand():
    a = identical_systems.floor_percent(spread(0.03, 0.02), [3] * 5, [3] * 5, shared="")
    root = math.sqrt(2 / 5 * (0.03**2 + 0.02**2 / 3))
    assert a.value == pytest.approx(100 * math.expm1(stats.t.ppf(0.975, 11) * root))
    assert a.low == pytest.approx(100 * math.expm1(1.959964 * root * math.sqrt(11 / stats.chi2.ppf(0.975, 11))))
    assert a.low < a.value < a.high
    within = identical_systems.floor_percent(spread(0.03, 0.02), [3, 2], [3, 1], shared="start")
    by_hand = 0.02 * math.sqrt((1 / 3 + 1 / 2) / 4 + (1 / 3 + 1) / 4)
    assert within.value == pytest.approx(100 * math.expm1(stats.t.ppf(0.975, 24) * by_hand))


@pytest.mark.parametrize("trials", [1, 3, 9])
def test_satterthwaite_carries_over_to_other_numbers_of_trials(trials: int):
    mine = identical_systems.floor_percent(spread(0.03, 0.02), [trials] * 4, [trials] * 4, shared="")
    v = 2 / 4 * (0.03**2 + 0.02**2 / trials)
    upper, lower = 2 / 4 / 3 * (3 * 0.03**2 + 0.02**2), 2 / 4 * (1 / trials - 1 / 3) * 0.02**2
    degrees = v**2 / (upper**2 / 11 + lower**2 / 24)
    assert mine.value == pytest.approx(100 * math.expm1(stats.t.ppf(0.975, degrees) * math.sqrt(v)))


@pytest.mark.parametrize(("between", "starts", "trials"), [(0.03, 6, 3), (0.03, 3, 1), (0.03, 4, 9), (0.0, 4, 1)])
def test_comparisons_of_identical_systems_stay_below_the_floor_as_often_as_said(between, starts, trials):
    rng = np.random.default_rng(17)
    within, studies = 0.02, 1500
    logs = rng.normal(0, between, (studies, 12, 1)) + rng.normal(0, within, (studies, 12, 3))
    upper = 3 * np.var(logs.mean(axis=2), axis=1, ddof=1)
    lower = np.var(logs, axis=2, ddof=1).mean(axis=1)
    later = rng.normal(0, math.sqrt(2 / starts * (between**2 + within**2 / trials)), studies)
    inside = []
    for one in range(studies):
        squares = spread(0, 0).model_copy(
            update={"between_mean_square": float(upper[one]), "within_mean_square": float(lower[one])}
        )
        floor = identical_systems.floor_percent(squares, [trials] * starts, [trials] * starts, shared="")
        inside.append(abs(later[one]) <= math.log1p(floor.value / 100))
    assert 0.935 <= np.mean(inside) <= (0.985 if between == 0 else 0.965)


@pytest.mark.parametrize("trials", [4, 10, 30, 1000])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.001, 1.05, 1.3])
def test_a_floor_for_more_trials_than_it_was_measured_with_is_never_absurd(trials: int, ratio: float):
    squares = spread(0, 0.01).model_copy(update={"between_mean_square": ratio * 0.01**2})
    as_measured = identical_systems.floor_percent(squares, [3] * 6, [3] * 6, shared="")
    floor = identical_systems.floor_percent(squares, [trials] * 6, [trials] * 6, shared="")
    assert 0 < floor.low < floor.value < floor.high
    assert floor.value <= 1.1 * as_measured.value, "it swallowed every verdict, or divided by 0"


def test_a_floor_of_more_trials_is_too_high_rather_than_too_low():
    rng = np.random.default_rng(23)
    studies, within, between = 1000, 0.02, 0.01
    upper = (3 * between**2 + within**2) * rng.chisquare(11, studies) / 11
    lower = within**2 * rng.chisquare(24, studies) / 24
    later = rng.normal(0, math.sqrt(2 / 4 * (between**2 + within**2 / 30)), studies)
    inside = []
    for one in range(studies):
        squares = spread(0, 0).model_copy(
            update={"between_mean_square": float(upper[one]), "within_mean_square": float(lower[one])}
        )
        floor = identical_systems.floor_percent(squares, [30] * 4, [30] * 4, shared="")
        inside.append(abs(later[one]) <= math.log1p(floor.value / 100))
    assert np.mean(inside) >= 0.95


def test_few_degrees_of_either_mean_square_are_no_floor():
    squares = spread(0.01, 0.02).model_copy(update={"within_degrees": 1})
    assert identical_systems.floor_percent(squares, [1] * 4, [1] * 4, shared="") is None
    assert identical_systems.floor_percent(squares, [3] * 4, [3] * 4, shared="") is not None
    assert identical_systems.floor_percent(squares, [3] * 4, [3] * 4, shared="start") is None


def test_identical_systems_are_called_different_at_most_as_often_as_said():
    rng = np.random.default_rng(5)
    squares = spread(0.03, 0.02)
    without, against = [], []
    for _ in range(100):
        means = rng.normal(0, 0.03, (2, 4, 1)) + rng.normal(0, 0.02, (2, 4, 3))
        values = 1000 * np.exp(means)
        rows = frame([*cell(values[0].tolist(), nodes=1), *cell(values[1].tolist(), nodes=3)])
        (plain,) = comparisons(rows, TIME)
        (held,) = comparison.judged([plain], rows, identical_systems.floors_of(rows, found(squares)))
        without.append(plain.verdict != "undecided")
        against.append(held.verdict != "undecided")
    assert np.mean(against) <= np.mean(without) <= 0.1


def change(low: float, high: float) -> Estimate:
    return Estimate(value=math.sqrt(low * high), low=low, high=high, n=6, unit="", method="made")


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [
        (1.01, 1.05, True), (1.01, 1.0999, True), (1.01, 1.11, False), (0.92, 0.98, True), (1 / 1.1001, 0.98, False),
        (0.99, 1.01, False), (1.2, 1.3, False), (1.0, 1.05, False),
    ],
)  # fmt: skip
def test_the_rule_is_the_whole_interval_within_the_floor(low: float, high: float, inside: bool):
    floor = Estimate(value=10.0, n=12, unit="%", method="made")
    assert identical_systems.within_noise(change(low, high), floor) is inside
    assert (
        identical_systems.within_noise(change(low, high).model_copy(update={"low": None, "high": None}), floor) is False
    )


def small_change():
    """Three nodes 3% slower, with next to no spread: decided by its own interval."""
    values = [[1000.0, 1001.0], [1001.0, 1002.0], [1002.0, 1000.0]]
    return [*cell(values, nodes=1), *cell([[1.03 * value for value in start] for start in values[::-1]], nodes=3)]


def test_a_change_within_the_noise_of_the_machine_is_undecided_and_says_so():
    rows = frame(small_change())
    (plain,) = comparisons(rows, TIME)
    assert plain.verdict == "slower"
    (held,) = comparison.judged([plain], rows, identical_systems.floors_of(rows, found(spread(0.05, 0.02))))
    assert (held.verdict, held.within_noise, held.survives_holm) == ("undecided", True, None)
    assert "within the noise of this machine" in held.sentence
    assert "study noise-floor of 2026-09-21, 12 starts, 36 trials" in held.sentence
    assert held.ratio == plain.ratio
    (quiet,) = comparison.judged([plain], rows, identical_systems.floors_of(rows, found(spread(0.001, 0.001))))
    assert (quiet.verdict, quiet.within_noise) == ("slower", False)
    assert quiet.floor_percent.value < 1


def test_an_effect_over_several_treatments_is_held_against_the_floor_too():
    rng = np.random.default_rng(6)
    records = [
        record(1000 * (1.03 if nodes == 3 else 1) * (2 if workload == "C" else 1) * math.exp(rng.normal(0, 0.001)),
               nodes=nodes, workload=workload, start=start, order=order, replicate=order)
        for start in range(1, 4) for nodes in (1, 3) for order, workload in enumerate("AACC", start=1)
    ]  # fmt: skip
    rows = frame(records).build(records, {"nodes": [1, 3], "workload": ["A", "C"]}, ("nodes",), 0)
    (plain,) = overall(rows, TIME)
    assert (plain.factor, plain.verdict) == ("nodes", "slower")
    held = plain.judged(rows, identical_systems.floors_of(rows, found(spread(0.05, 0.02))))
    assert (held.verdict, held.within_noise, held.within_trend) == ("undecided", True, False)
    assert held.floor_percent is not None
    assert ": undecided: " in held.sentence
    assert "within the noise of this machine" in held.sentence
    assert "slower" not in held.sentence
    assert held.ratio == plain.ratio
    quiet = plain.judged(rows, identical_systems.floors_of(rows, found(spread(0.001, 0.001))))
    assert quiet.model_copy(update={"floor_percent": None}) == plain
    assert plain.judged(rows, identical_systems.floors_of(rows)) == plain


def test_levels_within_a_start_are_held_against_what_trials_differ_only():
    records = [*cell([[1000.0], [1001.0], [999.0]], workload="A"), *cell([[1030.0], [1031.5], [1029.0]], workload="C")]
    rows = frame(records)
    (plain,) = comparisons(rows.build(records, {"workload": ["A", "C"]}, (), 0), TIME)
    held = comparison.judged([plain], rows.build(records, {"workload": ["A", "C"]}, (), 0),
                        identical_systems.floors_of(rows, found(spread(0.5, 0.001))))[0]  # fmt: skip
    assert (held.verdict, held.within_noise) == ("slower", False)
    assert "paired by start" in held.floor_percent.method


def test_the_answer_and_the_caveats_say_what_was_judged_against():
    records = [one.model_copy(update={"settings": TrialSettings.model_validate(SETTINGS)}) for one in small_change()]
    asked = study(factors={"nodes": (1, 3), "workload": ("A",)}, design={"starts": 3, "trials": 2})
    result = analyse(records, asked, seed=1, floor=found(spread(0.05, 0.02)))
    assert any("undecided (within noise)" in one for one in result.answer)
    assert result.of(Validity)[0].floor.source == "kept floor"
    assert result.of(Validity)[0].floor.unlike == ("load.operations 600",)
    assert any("load.operations 600, which this study has nowhere" in one for one in result.caveats)
    none = analyse(records, asked, seed=1)
    assert none.of(Validity)[0].floor.source == "none"
    assert any("not screened for noise" in one and "noise-floor.toml" in one for one in none.caveats)
    assert not any(one.within_noise for one in none.of(Comparison))
    row = tables(result)["noise_floor"].row(0, named=True)
    assert (row["response"], row["source"], row["level_starts"], row["level_trials"]) == (TIME, "kept floor", 3, 2)


def test_control_cells_come_first_where_they_suffice():
    rng = np.random.default_rng(2)
    records = []
    for start in range(1, 7):
        effect = rng.normal(0, 0.03)
        for order in range(1, 5):
            value = 1000 * math.exp(effect + rng.normal(0, 0.01))
            records.append(record(value, start=start, order=order, replicate=order, control=order > 2))
    floors = identical_systems.floors_of(frame(records), found(spread(0.5, 0.5)))
    floor = floors.of(TIME, [2] * 3, [2] * 3, shared="")
    assert floor.source == "control cells"
    assert floor.percent.value < 15
    few = identical_systems.floors_of(
        frame([one for one in records if one.start_replicate < 4]), found(spread(0.5, 0.5))
    )
    assert few.of(TIME, [2] * 3, [2] * 3, shared="").source == "kept floor", "two degrees of freedom are too few"
    assert few.of(TIME, [2] * 3, [2] * 3, shared="start").source == "control cells"


def test_the_floor_of_control_trials_is_told_also_where_it_is_too_little():
    records = [
        record(value, block=block, start=block, order=order, replicate=order, control=control)
        for block, values in enumerate([(100.0, 102.0), (110.0, 111.0), (90.0, 93.0)], start=1)
        for order, (value, control) in enumerate(zip(values, (False, True), strict=True), start=1)
    ]
    rows = frame([*records, *cell([[500.0, 900.0]], nodes=3)])
    result = noise_floor.noise_floor(rows, TIME, identical_systems.floors_of(rows))
    variances = [np.var(np.log(pair), ddof=1) for pair in ([100, 102], [110, 111], [90, 93])]
    assert result.cv.value == pytest.approx(np.sqrt(np.expm1(np.mean(variances))))
    assert (result.control_trials, result.blocks, result.source) == (3, 3, "none")
    assert "control cells of 3 starts: too few" in result.sentence


def test_a_floor_of_levels_within_starts_only_is_told_as_that():
    """Two factors, one over starts and one within; three starts of control trials suffice for the second only."""
    rng = np.random.default_rng(9)
    records = [
        record(1000 * math.exp(rng.normal(0, 0.01)), nodes=nodes, workload=workload, start=start, order=order,
               replicate=order, control=control)
        for start in range(1, 4) for nodes in (1, 3)
        for order, (workload, control) in enumerate([("A", False), ("C", False), ("A", False), ("C", False),
                                                     *([("A", True)] * 2 if nodes == 1 else [])], start=1)
    ]  # fmt: skip
    rows = frame(records)
    rows = rows.build(records, {"nodes": [1, 3], "workload": ["A", "C"]}, ("nodes",), 0)
    floors = identical_systems.floors_of(rows)
    result = noise_floor.noise_floor(rows, TIME, floors)
    assert result.source == "control cells"
    assert "tried within the same starts" in result.sentence
    assert "Levels on their own starts were judged against none." in result.sentence
    within = [one for one in comparison.judged(comparisons(rows, TIME), rows, floors) if one.floor_percent is not None]
    assert not within or {one.factor for one in within} == {"workload"}


def test_values_that_have_no_logarithm_have_no_floor():
    assert identical_systems.spread_of(frame(cell([[5.0, -1.0], [4.0, 3.0]])).data, TIME) is None
    assert identical_systems.spread_of(frame(cell([[None, None]])).data, TIME) is None
    lonely = identical_systems.spread_of(frame(cell([[5.0, 6.0]])).data, TIME)
    assert (lonely.between_mean_square, lonely.between_degrees) == (None, 0)
    assert identical_systems.floor_percent(lonely, [2, 2], [2, 2], shared="") is None


def test_what_is_kept_is_what_was_measured():
    records = [one.model_copy(update={"ended_s": one.begun_s + 5}) for one in pairs(1)]
    voided = records[0].model_copy(update={"attempt": 2, "verdict": VOIDED})
    rows = analyse_frame([*records, voided])
    floor = identical_systems.measured(rows, "noise-floor", HELD)
    assert (floor.pairs, floor.holds_for) == (6, HELD)
    assert floor.made_s == max(one.ended_s for one in records)
    (time,) = [one for one in floor.spreads if one.response == TIME]
    assert (time.starts, time.trials, time.between_degrees, time.within_degrees) == (12, 36, 11, 24)
    assert KeptFloor.model_validate_json(floor.model_dump_json()) == floor
    assert identical_systems.measured(analyse_frame(pairs(1, blocks=2)), "noise-floor", HELD) is None, (
        "too little to keep"
    )


def analyse_frame(records):
    from steelyard.analysis.frame import frame_of

    return frame_of(records, same())


def test_a_study_of_identical_systems_is_not_judged_against_itself():
    result = analyse(pairs(8), same(), seed=1, floor=found(spread(0.5, 0.5)))
    (one,) = result.of(Comparison)
    assert (one.factor, one.baseline, one.level) == ("label", "A", "B")
    assert one.floor_percent is None
    assert result.of(Validity)[0].floor.source == "this study"


def test_two_studies_have_the_greater_floor_and_none_if_one_has_none():
    rows = frame(small_change())
    small, large = (identical_systems.floors_of(rows, found(spread(one, 0.01))) for one in (0.01, 0.04))
    both = identical_systems.of_two((small, large), TIME, [2] * 3, [2] * 3, "")
    assert both == large.of(TIME, [2] * 3, [2] * 3, shared="")
    assert identical_systems.of_two((small, identical_systems.floors_of(rows)), TIME, [2] * 3, [2] * 3, "") is None


def test_a_floor_of_something_else_does_not_hold_and_says_why():
    floor = kept()
    assert mismatch(floor, [HELD]) == ""
    assert "kernel 6.1, here it is 6.2" in mismatch(
        floor, [HELD.model_copy(update={"machines": ({**MACHINE, "kernel": "6.2"},)})]
    )
    assert "this study has 0" in mismatch(floor, [HELD.model_copy(update={"machines": ()})])
    assert "loop closed, this study has open" in mismatch(floor, [HELD.model_copy(update={"loop": "open"})])
    several = [HELD.model_copy(update={"nodes": nodes}) for nodes in (3, 6)]
    assert "nodes 1, this study has 3 and 6" in mismatch(floor, several)
    assert mismatch(floor, [HELD, *several]) == ""
    apart = [HELD.model_copy(update={"loop": "open"}), HELD.model_copy(update={"nodes": 3})]
    assert "no treatment of this study has all of site local, system cassandra" in mismatch(floor, apart)
    assert mismatch(floor, [])
    other = HELD.model_copy(update={"settings": {**HELD.settings, "load.threads": "8", "workload.name": "ycsb-c"}})
    assert unlike(floor, [other]) == ("load.threads 1", "workload.name ycsb-a")
    assert unlike(floor, [other, HELD]) == ()
    assert in_words(["a 1", "b 2", "c 3", "d 4"]) == "a 1, b 2, c 3 and 1 more"


SETTINGS = {
    "site": {"name": "local", "nodes": 1},
    "system": {"name": "cassandra"},
    "workload": {"name": "ycsb-a"},
    "load": {"engine": "agent", "threads": 1, "operations": 1000},
}
