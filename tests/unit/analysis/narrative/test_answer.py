"""Sentences of the answer where there are many lines."""

from __future__ import annotations

from steelyard.analysis.analyse import analyse
from tests.unit.analysis.made import cell, study

FACTOR_BY_WORKLOAD = {"A": 2.0, "B": 2.5, "C": 3.0, "D": 1.0, "E": 2.0}


def test_many_lines_are_counted_by_verdict_and_those_without_a_ratio_are_named():
    records = []
    for workload, factor in FACTOR_BY_WORKLOAD.items():
        starts = [[100.0 + start, 101.0 - start] for start in range(4)]
        records += cell([[100.0, 103.0], [98.0, 101.0], [101.0, 104.0], [99.0, 97.0]], workload=workload)
        records += cell([[factor * one for one in start] for start in starts], workload=workload, nodes=3)
    records += cell([[100.0]], workload="F")
    records += cell([[100.0]], workload="I", nodes=3)
    workloads = (*FACTOR_BY_WORKLOAD, "F", "I")
    results = analyse(records, study(factors={"nodes": (1, 3), "workload": workloads}), seed=1)
    assert results.answer[0] == (
        "3 nodes against 1 node, by execution time, in 7 lines of the table: slower in 4 (workload A; workload B; "
        "workload C; workload E), undecided in 1 (workload D), no valid trial in 1 (workload F) and no verdict (1 node "
        "is missing) in 1 (workload I)."
    )
    assert results.answer[1].startswith("The largest change: workload C took 302 ms on 3 nodes and 100 ms on 1 node")


def test_the_answer_says_what_was_timed_and_that_undecided_is_not_equal():
    sizes = study(factors={"nodes": (1, 3)})
    records = [
        record.model_copy(update={"treatment": {"nodes": record.treatment["nodes"]}})
        for record in [*cell([[100.0], [90.0], [110.0]]), *cell([[99.0], [104.0], [108.0]], nodes=3)]
    ]
    (first, bounds, *_) = analyse(records, sizes, seed=1).answer
    assert first.startswith("Each trial took 104 ms on 3 nodes and 99.7 ms on 1 node: +4% [−17, 31], undecided")
    assert bounds == (
        "If slower, by less than 31%; if faster, by less than 17%. To show the change as measured: 47 blocks of a new "
        "study, 0 s; to show that it changes less than 10%: 18 blocks of a new study, 0 s, each with a chance of 80%."
    )
    throughput = study(factors={"nodes": (1, 3)}, analysis={"response": "throughput_per_s"})
    (first, *_) = analyse(records, throughput, seed=1).answer
    assert first.startswith("The throughput was ")


def test_valid_trials_without_a_percentile_are_not_called_invalid():
    records = [
        record.model_copy(
            update={"responses": record.responses.model_copy(update={"operations": 300, "response_ms_p99": 2.0})}
        )
        for record in [*cell([[100.0], [90.0], [110.0]]), *cell([[104.0], [99.0], [108.0]], nodes=3)]
    ]
    asked = study(factors={"nodes": (1, 3), "workload": ("A",)}, analysis={"response": "response_ms_p99"})
    (first, *_) = analyse(records, asked, seed=1).answer
    assert first == (
        "There is no answer to “How does execution time change with nodes?” yet: 6 of 6 trials are valid, but this "
        "percentile needs 1,000 operations per trial, and no trial had more than 300."
    )
    asked = study(
        factors={"nodes": (1, 3)}, analysis={"response": "throughput_per_s", "responses": ["response_ms_p99"]}
    )
    (further,) = analyse(records, asked, seed=1).further
    assert further.answer[0] == (
        "99th percentile of response time: 6 of 6 trials are valid, but this percentile needs 1,000 operations per "
        "trial, and no trial had more than 300."
    )
