"""The whole analysis: from records to the answer in words and to tables."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import frame_of, size_factor
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.scaling import Scaling
from steelyard.analysis.tables import LIMITS, columns, tables, titles
from steelyard.model import responses
from steelyard.model.trial import Responses
from steelyard.model.trial_settings import TrialSettings
from steelyard.report.basics.definitions import OF_THE_PAGE

from .made import FAULT, VOIDED, cell, drawn, record, study

NUMBERS = Path(__file__).resolve().parents[3] / "docs" / "reference" / "numbers"


def two_sizes(starts: int = 3, shares: tuple[str, ...] = ("cpu", "disk")):
    made = []
    for nodes, base in ((1, 4100.0), (3, 5900.0)):
        turned = [start if nodes == 1 else -start % 3 for start in range(starts)]
        values = [[base * (1 + 0.01 * start + 0.002 * order) for order in range(3)] for start in turned]
        made += cell(values, nodes=nodes, shares=shares)
    return made


def only(records, **changes) -> Results:
    return analyse(records, study(factors={"nodes": (1, 3), "workload": ("A",)}, **changes), seed=1)


def test_the_answer_is_what_a_person_would_write():
    answer = only(two_sizes()).answer
    assert answer[0].startswith(
        "On this machine, workload A took 5.97 s on 3 nodes and 4.15 s on 1 node: +43.9% [40.4, 47.5], slower "
        "(95% interval; geometric means of 9 trials from 3 starts each)"
    )
    assert answer[-1] == "The nodes share one processor, so this says nothing about scaling out on separate machines."


def test_nodes_with_processor_limits_of_their_own_add_them():
    limits = TrialSettings({"node": {"cpus": 0.5}})
    limited = [one.model_copy(update={"settings": limits}) for one in two_sizes()]
    found = only(limited)
    assert found.answer[-1] == "The nodes share one processor, and each adds at most the time of its own limit."
    adds = "The nodes share one processor and disk: each node adds at most the processor time of its own limit"
    assert any(one.startswith(adds) for one in found.caveats)
    assert found.of(Scaling)[0].sentence.endswith(
        "the nodes share one processor: each adds at most the time of its own limit"
    )
    one_without = only([*limited[:-1], two_sizes()[-1]])
    assert any("adding a node adds no hardware" in one for one in one_without.caveats)


def test_one_start_gives_no_verdict_and_says_why():
    found = only(two_sizes(starts=1))
    assert "no verdict" in found.answer[0]
    assert "fewer than three starts per level" in found.answer[0]
    assert any("rest on one start" in one for one in found.caveats)
    assert found.of(Comparison)[0].verdict == "descriptive"


def test_undecided_is_said_with_its_interval():
    records = drawn(np.random.default_rng(2), {1: 4000.0, 3: 4010.0}, starts=3, trials=3, start_cv=0.05, trial_cv=0.01)
    found = only(records)
    assert "undecided" in found.answer[0]
    assert "[" in found.answer[0]
    assert not any("no difference" in one for one in (*found.answer, *found.caveats))


def test_failures_of_the_system_are_told():
    found = only([*two_sizes(), record(None, nodes=3, start=2, replicate=4, order=4, verdict=FAULT)])
    assert "in 1 trial the system under test failed" in found.answer[-1]
    assert any("failed in 1 trial" in one for one in found.caveats)


def test_a_treatment_that_never_worked_is_named():
    records = [*cell([[5.0, 6.0], [5.5, 6.5]]), *(record(None, nodes=3, replicate=r, verdict=FAULT) for r in (1, 2))]
    found = only(records)
    assert "3 nodes has no valid trial" in found.answer[0]
    assert "No valid trial of: workload A, 3 nodes." in found.caveats


def test_exclusions_are_counted_with_reasons():
    found = only([*two_sizes(), record(1.0, order=9, verdict=VOIDED)])
    assert (found.trials, found.used) == (19, 18)
    assert any(one == "1 of 19 attempts was left out: 1 invalid: a probe gap." for one in found.caveats)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_two_to_five_sentences_for_any_number_of_workloads(count):
    names = "ABCDEFI"[:count]
    records = [
        one
        for workload in names
        for nodes in (1, 3)
        for one in cell(
            [[5000.0 * nodes, 5100.0 * nodes], [5050.0 * nodes, 5075.0 * nodes]], nodes=nodes, workload=workload
        )
    ]
    found = analyse(records, study(factors={"nodes": (1, 3), "workload": tuple(names)}), seed=1)
    assert 2 <= len(found.answer) <= 5
    assert all(sentence.endswith(".") for sentence in found.answer)


def test_nothing_valid_is_no_answer():
    assert "no answer" in only([]).answer[0]
    assert "no answer" in only([record(5.0, verdict=VOIDED)]).answer[0]


def test_the_same_records_in_any_order_and_the_same_seed_give_the_same_results():
    records = drawn(
        np.random.default_rng(1),
        dict.fromkeys((1, 2, 3, 4, 6), 4000.0),
        starts=2,
        trials=3,
        start_cv=0.02,
        trial_cv=0.01,
    )
    shuffled = list(records)
    random.Random(3).shuffle(shuffled)
    asked = study(factors={"nodes": (1, 2, 3, 4, 6), "workload": ("A",)})
    assert analyse(records, asked, seed=5) == analyse(shuffled, asked, seed=5)


def test_results_survive_json():
    found = only(two_sizes())
    assert Results.model_validate_json(found.model_dump_json()) == found


def test_laws_follow_the_load():
    records = two_sizes()
    assert {one.load for one in only(records).of(LawFit)} == {"single"}
    assert {one.load for one in only(records, load={"operations": 10, "threads": 8}).of(LawFit)} == {"saturated"}
    open_loop = only(records, load={"operations": 10, "schedule": "poisson", "rate_per_s": 10}).of(LawFit)
    assert all("open loop" in one.refusal for one in open_loop)


def test_sizes_are_nodes_else_the_first_numeric_hard_factor():
    assert size_factor(frame_of(two_sizes(), study())) == "nodes"
    records = [
        record(5.0, extra={"system.heap_mb": heap}).model_copy(update={"hard": ("system.heap_mb",)})
        for heap in (512, 1024)
    ]
    assert size_factor(frame_of(records, study(factors={"system.heap_mb": (512, 1024)}))) == "system.heap_mb"


def test_a_study_without_factors_is_described():
    found = analyse(
        [one.model_copy(update={"treatment": {}, "hard": ()}) for one in cell([[5.0, 6.0, 7.0]])],
        study(factors={}),
        seed=1,
    )
    assert found.answer[0] == "All trials: execution time 6.00 ms (geometric mean of 3 trials from 1 start)."
    starts = [one.model_copy(update={"treatment": {}, "hard": ()}) for one in cell([[4.0], [5.0], [6.25]])]
    answer = analyse(starts, study(factors={}), seed=1).answer[0]
    half = 4.303 * math.log(1.25) / math.sqrt(3)  # t of 2 degrees of freedom; logarithms one step apart
    low, high = (f"{5 * math.exp(end):.1f}" for end in (-half, half))
    interval = f"[{low}, {high}] (95% interval; geometric mean of 3 trials from 3 starts)."
    assert answer == f"All trials: execution time 5.00 ms {interval}"


@pytest.mark.parametrize("records", [[], two_sizes()], ids=["empty", "full"])
def test_every_column_of_every_table_is_described(records):
    found = only(records)
    described = columns(found)
    assert {name: list(about) for name, about in described.items()} == {
        name: table.columns for name, table in tables(found).items()
    }
    assert {*titles(found), LIMITS} == described.keys()


def test_tables_hold_the_numbers_with_their_intervals():
    made = tables(only(two_sizes()))
    row = made["comparison"].row(0, named=True)
    assert (row["baseline"], row["level"], row["verdict"]) == ("1", "3", "slower")
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert made["trials"].height == 18
    assert made["summary"].filter(response="execution_time_ms")["nodes"].to_list() == [1, 3]


def the_numbers() -> str:
    return "".join(page.read_text(encoding="utf-8") for page in sorted(NUMBERS.glob("*.md")))


def test_every_response_has_a_unit_a_label_and_a_definition():
    text = the_numbers()
    of_records = [name for name, response in responses.every().items() if response.source == "records"]
    assert of_records == list(Responses.model_fields)
    for name, response in responses.every().items():
        assert response.unit
        assert response.label
        assert response.definition
        assert f"`{name}`" in text, f"docs/reference/numbers does not define {name}"


def test_every_column_is_in_the_reference():
    text = the_numbers()
    ends = re.compile(r"_(low|high|method)$")
    names = {ends.sub("", column) for about in columns(only(two_sizes())).values() for column in about}
    assert {name for name in names - {"nodes", "workload"} if f"`{name}`" not in text} == set()


def test_the_page_of_page_terms_has_no_others():
    rows = re.findall(r"^\| ([^|]+) \|", (NUMBERS / "page-only.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) - {"term", "---"} - OF_THE_PAGE.keys() == set()


def test_every_term_of_the_page_is_in_the_reference():
    text = the_numbers()
    assert {term for term in OF_THE_PAGE if term not in text} == set()
