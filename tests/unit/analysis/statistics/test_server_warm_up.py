"""Starts that were warmed up, and what the report says of those that were not warm."""

from __future__ import annotations

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.server_warm_up import WarmedStart, cold_starts, warmed_starts
from steelyard.model.server_warm_up import NodeWarmth, ServerWarmth
from tests.unit.analysis.made import cell, study

LEFT = "compilers still used 9% of a core on n2 (warm: below 5%)"


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
        f"{LEFT}. Colder servers look slower than they are; try server_warm_up.deadline_s = 90, twice as long."
    )


REFUSED = "the engine cannot warm the servers up: no closed loop"


def start_of(rounds: int, left: str, *, warm: bool = False) -> WarmedStart:
    return WarmedStart(start="b01", nodes=2, seconds=20.0 * rounds, rounds=rounds, operations=0, warm=warm, left=left)


def test_a_refused_server_warm_up_is_not_advised_a_later_deadline():
    assert list(cold_starts([start_of(0, REFUSED)] * 4)) == [
        f"In 4 of 4 starts the servers were not warmed up: {REFUSED}. Colder servers look slower than they are."
    ]
    refused, ended = cold_starts([start_of(0, REFUSED), start_of(2, LEFT), start_of(3, "", warm=True)])
    assert refused.startswith("In 1 of 3 starts the servers were not warmed up: ")
    assert "after up to 40 s: " in ended
    assert ended.endswith("try server_warm_up.deadline_s = 80, twice as long.")


def test_the_sizes_of_cold_starts_are_named_where_sizes_differ():
    small = start_of(3, "", warm=True).model_copy(update={"nodes": 1})
    cold = start_of(2, LEFT)
    for rows, words in (
        ([small, cold], "In the only start with 2 nodes and none with 1 node the servers"),
        ([small, cold, cold], "In both starts with 2 nodes and none with 1 node the servers"),
        ([small, cold, cold, cold], "In all 3 starts with 2 nodes and none with 1 node the servers"),
        (
            [small, cold, cold.model_copy(update={"nodes": 4})],
            "In the only start with 2 nodes, the only start with 4 nodes and none with 1 node the servers",
        ),
        ([small, small, small.model_copy(update={"warm": False})], "In 1 of 3 starts the servers"),
        (
            [small, cold, cold, cold.model_copy(update={"warm": True})],
            "In 2 of 3 starts with 2 nodes and none with 1 node the",
        ),
    ):
        (caveat,) = cold_starts(rows)
        assert caveat.startswith(words)


def test_different_reasons_are_summed_up_with_their_count_and_range():
    (same,) = cold_starts([start_of(2, LEFT)] * 4)
    assert f": {LEFT}. " in same
    falling = "service times still fell by 28% for ycsb-c (noise: 5%), by 7% for ycsb-a (noise: 6%)"
    more = "compilers still used 102% of a core on n1, 5.2% of a core on n2 (warm: below 5%)"
    (different,) = cold_starts([start_of(2, LEFT), start_of(2, f"{more}; {falling}"), start_of(2, "no operation")])
    assert (
        ": compilers still used 5.2 to 102% of a core in 2 starts; service times still fell by 7 to 28% in 1 start; "
        "no operation in 1 start. " in different
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
