"""Starts that were warmed up, and what the report says of those that were not warm."""

from __future__ import annotations

from steelyard.analysis import analyse
from steelyard.analysis.statistics.server_warm_up import WarmedStart, cold_starts, warmed_starts
from steelyard.model.server_warm_up import NodeWarmth, ServerWarmth
from tests.unit.analysis.made import cell, study

LEFT = "compilers still took n2 9% of a core (warm: below 5%)"


def warmed(*, reached: bool = True):
    nodes = {"n1": NodeWarmth(compiler_fraction=0.02), "n2": NodeWarmth(compiler_fraction=0.09)}
    reasons = () if reached else (LEFT,)
    warmth = ServerWarmth(seconds=41.2, rounds=3, operations=900, reached=reached, reasons=reasons, nodes=nodes)
    return [one.model_copy(update={"server_warm_up": warmth}) for one in cell([[100.0, 101.0], [99.0, 100.0]])]


def test_one_row_per_start_and_none_without_server_warm_up():
    rows = list(warmed_starts(warmed(reached=False)))
    assert [(row.nodes, row.compiler_percent, row.warm, row.left) for row in rows] == [(2, 9.0, False, LEFT)] * 2
    assert list(warmed_starts(cell([[100.0]]))) == []


def test_what_was_not_reached_is_a_caveat():
    assert list(cold_starts(list(warmed_starts(warmed())))) == []
    results = analyse(warmed(reached=False), study(), seed=1)
    assert len(results.of(WarmedStart)) == 2
    (caveat,) = [one for one in results.caveats if "server warm-up" in one]
    assert caveat == (
        "In 2 of 2 starts the servers were not warm at the end of their server warm-up, after up to 41 s: "
        f"{LEFT}. Clusters that are not equally warm cannot be compared fairly; a longer server_warm_up.deadline_s "
        "helps."
    )


def test_a_study_in_published_order_says_that_it_ran_without():
    system = {"name": "cassandra"}
    published = study(system=system, design={"order": "published"}, server_warm_up={"mode": "off"})
    assert any(
        "not warmed up before the trials, as published" in one
        for one in analyse(cell([[1.0]]), published, seed=1).caveats
    )
    warm = study(system=system, design={"order": "published"}, server_warm_up={"mode": "on"})
    assert not any("not warmed up before" in one for one in analyse(warmed(), warm, seed=1).caveats)
