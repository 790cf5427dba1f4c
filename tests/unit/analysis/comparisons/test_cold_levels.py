"""Levels that differ in warmth: all starts of one ended their server warm-up cold, none of the other."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.comparisons.two_sided import Side, contrasts, pair
from steelyard.analysis.gate import case_of
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.overall import Overall
from steelyard.cli.terminal.comparison_table import verdict_of
from steelyard.model.server_warm_up import ServerWarmth
from steelyard.model.trial import TrialRecord
from steelyard.report.data.presentation import view
from steelyard.report.tables import answers
from steelyard.report.tables.comparisons import comparisons
from tests.unit.analysis.made import cell, frame, record, study, warmed

TIME = "execution_time_ms"
WARM = warmed(reached=True)
COLD = warmed(14.0)
ONE = [[100.0], [101.0], [99.0]]
THREE = [[112.0], [113.6], [110.4]]
"""12% longer, with an interval of about [9, 15]."""


def starts(values: list[list[float]], nodes: int, *warmth: ServerWarmth | None) -> list[TrialRecord]:
    """One start for each value, each as warm as given; one warmth is that of all."""
    each = warmth * len(values) if len(warmth) == 1 else warmth
    return [
        one.model_copy(update={"server_warm_up": each[one.start_replicate - 1]}) for one in cell(values, nodes=nodes)
    ]


def compared(one: tuple[ServerWarmth | None, ...], three: tuple[ServerWarmth | None, ...], values=THREE) -> Results:
    records = [*starts(ONE, 1, *one), *starts(values, 3, *three)]
    return analyse(records, study(factors={"nodes": (1, 3)}), seed=1)


@pytest.mark.parametrize(("one", "three", "cold"), [(WARM, COLD, "3 nodes"), (COLD, WARM, "1 node")])
def test_a_difference_within_the_fall_is_undecided_in_every_place_that_says_it(
    one: ServerWarmth, three: ServerWarmth, cold: str
) -> None:
    results = compared((one,), (three,))
    (found,) = results.of(Comparison)
    assert (found.verdict, found.within_cold, found.within_trend, found.survives_holm) == (
        "undecided", True, False, None,
    )  # fmt: skip
    warm = "1 node" if cold == "3 nodes" else "3 nodes"
    assert found.cold == (
        f"servers were still cold in all 3 starts of {cold}, in none of {warm}: another round may shorten times by 14%"
    )
    assert found.sentence == (
        f"workload A, 3 nodes against 1 node: undecided: {found.cold}, which may be all of the difference"
    )
    table = results.answer_table
    assert table is not None
    assert (table.rows[1].verdict_text, table.rows[1].why) == (
        "undecided (cold)", f"{found.cold}, which may be all of the difference",
    )  # fmt: skip
    assert "undecided (cold)" in " ".join(results.answer)
    listed, shown = comparisons(view(results)), answers.answers(results.answer_table)
    assert listed is not None
    assert shown is not None
    assert [row[-1].text for row in listed.rows] == ["undecided (cold)"]
    assert "undecided (cold)" in " ".join(cell.text for row in shown.rows for cell in row)
    assert Results.model_validate_json(results.model_dump_json()).of(Comparison) == (found,)


def test_a_nearer_end_beyond_the_fall_keeps_its_verdict_and_says_that_servers_were_cold() -> None:
    (found,) = compared((WARM,), (warmed(6.0),)).of(Comparison)
    assert (found.verdict, found.within_cold) == ("slower", False)
    assert found.sentence.endswith("in none of 1 node: another round may shorten times by 6%")


def test_cold_against_warm_shows_no_equality_and_no_blocks_would_decide() -> None:
    alike = [[100.2], [101.2], [99.2]]
    records = [*starts(ONE, 1, WARM), *starts(alike, 3, COLD)]
    margin = {"equivalence_margin_percent": 5.0}
    (plain,) = analyse(cell(ONE) + cell(alike, nodes=3), study(analysis=margin), seed=1).of(Comparison)
    (found,) = analyse(records, study(analysis=margin), seed=1).of(Comparison)
    assert (plain.verdict, found.verdict, found.within_cold) == ("equivalent", "undecided", True)
    assert "more blocks" not in found.sentence


@pytest.mark.parametrize(
    ("one", "three"),
    [
        ((COLD,), (COLD,)),
        ((WARM,), (COLD, COLD, WARM)),
        ((WARM, WARM, COLD), (COLD,)),
        ((WARM,), (WARM,)),
        ((None,), (COLD,)),
    ],
)
def test_levels_of_like_warmth_or_mixed_starts_are_compared_as_ever(
    one: tuple[ServerWarmth | None, ...], three: tuple[ServerWarmth | None, ...]
) -> None:
    (found,) = compared(one, three).of(Comparison)
    assert (found.verdict, found.within_cold, found.cold) == ("slower", False, "")


def test_a_fall_that_one_round_cannot_show_may_be_any_difference() -> None:
    once = ServerWarmth(seconds=60, rounds=1, operations=9, reached=False)
    (found,) = compared((WARM,), (once,), [[500.0], [515.0], [490.0]]).of(Comparison)
    assert (found.verdict, found.within_cold) == ("undecided", True)
    assert "another round may shorten times, one round cannot say how much" in found.sentence


def test_levels_that_share_their_starts_share_their_warmth_and_means_over_cells_do_not() -> None:
    records = [
        record(100 * nodes**0.1 * factor * (1 + nodes * start / 300) * (1 + start * order / 1000), nodes=nodes,
               workload=workload, start=start, order=order, warmth=COLD if nodes == 3 else WARM)
        for nodes in (1, 3) for start in (1, 2, 3) for order, (workload, factor) in enumerate([("A", 1.0), ("C", 1.2)])
    ]  # fmt: skip
    results = analyse(records, study(), seed=1)
    assert {one.within_cold for one in results.of(Comparison)} == {True}
    (mean,) = results.of(Overall)
    assert (mean.verdict, mean.within_cold) == ("undecided", True)
    assert mean.sentence.endswith(f"{mean.cold}, which may be all of the difference")
    assert {one.factor for one in results.of(Comparison)} == {"nodes"}
    a, b = (Side(name, frame(records), {"nodes": 3, "workload": name}) for name in "AC")
    (shared,) = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95))
    assert (shared.verdict, shared.cold) == ("slower", "")


@pytest.mark.parametrize("values", [THREE, ONE])
def test_compare_and_the_gate_say_the_same_of_two_stores(values: list[list[float]]) -> None:
    a, b = Side("a", frame(starts(ONE, 1, COLD))), Side("b", frame(starts(values, 1, WARM)))
    (found,) = adjusted(contrasts(a, b, pair(a, b), TIME, 0.95))
    assert (found.verdict, found.within_cold) == ("undecided", True)
    assert "servers were still cold in all 3 starts of a, in none of b" in found.sentence
    assert verdict_of(found) == "undecided; cold servers"
    case = case_of(a, b, found, 5.0, 1)
    assert (case.verdict, case.why) == ("undecided", found.why)
