"""Limits asked beside measured, and the node that stands out."""

from __future__ import annotations

from steelyard.judging.gauge import limits_of
from steelyard.lab.gauging import BUSY, deviations
from steelyard.model.gauged import Gauged
from steelyard.report.tables.node_limits import node_limits
from tests.unit.judging.test_attempts import record as record_of
from tests.unit.lab.fakes import plan_of, study

BEFORE = Gauged(
    moment="before",
    asked={"cpus": 0.5},
    measured={
        "n1": {"cpus": 0.49, "work_per_cpu_s": 100.0},
        "n2": {"cpus": 0.51, "work_per_cpu_s": 98.0},
        "n3": {"cpus": 0.35, "work_per_cpu_s": 60.0},
    },
)


def test_a_node_stands_out_by_what_was_asked_or_by_the_others() -> None:
    cpus, speed = limits_of([BEFORE])
    assert (cpus.asked, cpus.median) == (0.5, 0.49)
    assert [reading.node for reading in cpus.odd] == ["n3"]
    assert (speed.asked, [reading.node for reading in speed.odd]) == (None, ["n3"])


def test_rows_are_one_for_each_number_asked() -> None:
    other = BEFORE.model_copy(update={"asked": {"cpus": 1.0}, "moment": "after"})
    assert [(row.limit, row.asked, len(row.readings)) for row in limits_of([BEFORE, other, BEFORE])] == [
        ("cpus", 0.5, 6), ("cpus", 1.0, 3), ("work_per_cpu_s", None, 9),
    ]  # fmt: skip


def test_what_was_not_asked_is_no_row() -> None:
    odd = Gauged(moment="before", measured={"n1": {"memory_mb": 10.0}})
    assert limits_of([odd]) == ()


def test_deviations_are_sentences() -> None:
    missing = BEFORE.model_copy(update={"problems": {"n4": "no agent"}})
    assert deviations(missing) == [
        "n4: its limits could not be measured: no agent",
        f"n3: node.cpus is 0.35, asked 0.5{BUSY}",
        "n3: speed of a core is 60, the other nodes have 98",
    ]


def test_memory_of_a_virtual_machine_has_its_row() -> None:
    gauged = Gauged(moment="before", asked={"machine_memory_mb": 1024.0}, measured={"n1": {"machine_memory_mb": 900.0}})
    table = node_limits([("", gauged)], {}, ())
    assert table is not None
    assert [cell.text for cell in table.rows[0]][:4] == ["memory of its machine", "MiB", "1,024", "900"]
    assert deviations(gauged) == ["n1: memory of its machine (node.memory_mb) is 900, asked 1,024"]


def test_a_limit_without_a_measurement_is_named() -> None:
    gauged = BEFORE.model_copy(update={"asked": {"cpus": 0.5, "memory_mb": 20_000.0}})
    table = node_limits([("", gauged)], {}, ())
    assert table is not None
    assert table.caption.endswith(
        " Without a number: memory. The machine had too little left to reach the limit, or did not say what it has."
    )
    small = gauged.model_copy(update={"measured": {"n1": {"cpus": 0.5, "memory_mb": 20_000.0}}})
    table = node_limits([("", gauged), ("", small)], {}, ())
    assert table is not None
    assert " Without a number: memory (1 of 2 times)." in table.caption


def test_the_table_names_the_odd_node() -> None:
    table = node_limits([("", BEFORE)], {"n1": {"limit_cpu_period_ms": "100"}}, ())
    assert table is not None
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts[0][0] == "processors"
    assert texts[0][-1] == "n3 (0.35)"
    assert texts[0][-2] == "3"
    assert "The period of a quota is 100 ms." in table.caption
    assert node_limits([], {}, ()) is None


def test_rows_of_several_profiles_name_theirs() -> None:
    slow = BEFORE.model_copy(update={"asked": {"cpus": 0.36}})
    table = node_limits([("raspberry-pi-2", slow), ("t2.micro", BEFORE)], {}, ())
    assert table is not None
    assert table.columns[0].name == "profile"
    assert {row[0].text for row in table.rows} == {"raspberry-pi-2", "t2.micro"}


def test_limits_in_stretched_time_are_called_so() -> None:
    (trial, *_) = plan_of(study(node={"cpus": 1.0, "dilation": 2.0})).trials
    dilated = node_limits([("", BEFORE)], {}, (record_of(trial),))
    assert dilated is not None
    assert "what the study asks for, divided by its dilation of 2." in dilated.caption
    plain = node_limits([("", BEFORE)], {}, ())
    assert plain is not None
    assert "dilation" not in plain.caption
