"""`steelyard compare` from stores on disk: two stores, two treatments, a store and a reference; what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.cli.commands.compare import EXIT_DECIDED, EXIT_UNDECIDED, compare
from steelyard.cli.terminal.comparison_table import effect
from steelyard.cli.terminal.wide_table import CELLS, forest_line, forest_span
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.report.figures.forest import ticks
from tests.unit.cli.screen import printed
from tests.unit.verify import made


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    slow = made.store(tmp_path_factory.mktemp("one"))
    other = made.STUDY.replace("service_us = 1000.0", "service_us = 500.0")
    begun_s = made.BEGUN_S + 7200
    fast = made.store(tmp_path_factory.mktemp("other"), speed=2.0, text=other, begun_s=begun_s, cores="4")
    return slow, fast


def told(*sides: object, width: int = 200, **options: Any) -> tuple[int, str]:
    found = printed(lambda: compare(*map(str, sides), **options), width)
    assert found.err == ""
    return found.code, found.out


def test_two_stores(stores: tuple[Path, Path]) -> None:
    code, text = told(*stores)
    assert code == EXIT_DECIDED
    assert text.count(": faster: execution time ") == 2
    assert "3 (3) / 3 (3)" in text
    assert "●" in text
    assert "system.service_us: 1000.0 -> 500.0" in text
    assert "cores: 2 -> 4" in text
    assert "all of side a came before side b" in text
    assert "in both stores" not in text


def test_several_responses_with_commas_and_spaces(stores: tuple[Path, Path]) -> None:
    code, text = told(*stores, response_name="p50, time")
    assert code == EXIT_DECIDED
    assert text.count(": faster: execution time ") == 2


def test_two_treatments(stores: tuple[Path, Path]) -> None:
    code, text = told(stores[0], fixed_a=["nodes=1"], fixed_b=["nodes=2"], response_name="throughput")
    assert code == EXIT_DECIDED
    assert "2 nodes against 1 node: faster: throughput +" in text
    assert "site.nodes: 1 -> 2" in text
    assert "differ in more" not in text


def test_a_store_with_itself_is_equivalent_or_undecided(stores: tuple[Path, Path], tmp_path: Path) -> None:
    copy = made.store(tmp_path)
    code, text = told(stores[0], copy, margin_percent=5.0)
    assert (code, text.count("equivalent within 5%")) == (EXIT_DECIDED, 4), "in the table and in the sentences alike"
    assert "p (Holm)" in text
    assert "after Holm's correction over 2 comparisons" in text
    assert "trials are in both stores and counted as independent: they cannot differ" in text
    assert told(stores[0], copy)[0] == EXIT_UNDECIDED


def test_json_has_everything(stores: tuple[Path, Path]) -> None:
    code, text = told(*stores, as_json=True)
    found = json.loads(text)
    assert code == EXIT_DECIDED
    (one, _) = found["comparisons"]
    assert (one["verdict"], one["cell"], one["starts_a"], one["paired"]) == ("faster", {"nodes": 1}, 3, False)
    assert {"ratio", "change_percent", "effect", "delta", "sentence", "mean_a", "mean_b"} <= set(one)
    assert {diff["kind"] for diff in found["differences"]} == {"setting", "machine", "time"}


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_figure(stores: tuple[Path, Path], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"forest.{suffix}"
    told(*stores, figure=path, margin_percent=5.0)
    content = path.read_bytes()
    assert content.startswith(b"<svg" if suffix == "svg" else b"\x89PNG")
    if suffix == "svg":
        assert b"faster" in content
        assert b"1 node" in content


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"b": None}, "no --a and no --b: within one store"),
        ({"b": None, "fixed_a": ("nodes=1",), "fixed_b": ("nodes=1",)}, "both sides are the same trials"),
        ({"b": None, "fixed_a": ("node=1",), "fixed_b": ("nodes=2",)}, "no such factor"),
        ({"b": None, "fixed_a": ("nodes=1",), "fixed_b": ("nodes=7",)}, "no such level"),
        ({"b": None, "fixed_a": ("nodes",)}, "--a nodes"),
        (
            {"b": None, "fixed_a": ("nodes=1",), "fixed_b": ("nodes=2",), "response_name": "speed"},
            "unknown response",
        ),
        ({"b": "nothing-of-this-name"}, "not a store, a shipped table or a study"),
        ({"b": None, "fixed_a": ("nodes=1,nodes=2",), "fixed_b": ("nodes=2",)}, "nodes is 1 already"),
        (
            {"b": None, "fixed_a": ("nodes=1",), "fixed_b": ("nodes=2",), "response_name": "errors"},
            "other than 0 on side a",
        ),
        ({"b": "speedup"}, "no results here can be compared with speedup"),
        ({"b": "all"}, "one publication at a time"),
        ({"b": "srinadhuni2018", "response_name": "p99"}, "--response p99"),
        ({"b": "srinadhuni2018", "margin_percent": 5.0}, "--margin is for two sides"),
        ({"b": "ec2_latency", "fixed_b": ("replication_factor=4",)}, "nothing like it was published"),
        ({"b": "hajji2016", "figure": Path("x.svg")}, "none of our numbers matches one that can be drawn"),
        ({"b": None, "fixed_a": ("nodes=1",), "fixed_b": ("nodes=2",), "figure": Path("x.gif")}, "no picture"),
        (
            {
                "b": None,
                "fixed_a": ("nodes=1",),
                "fixed_b": ("nodes=2",),
                "response_name": "p50,time",
                "figure": Path("x.svg"),
            },
            "--figure x.svg: a figure shows one response, not 2",
        ),
        ({"b": "richardson2017", "fixed_b": ("platform=pdp-11",)}, "nothing like it was published"),
        ({"b": "richardson2017", "response_name": "p99"}, "--response p99"),
    ],
)
def test_what_is_refused_and_how(stores: tuple[Path, Path], asked: dict, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        told(stores[0], **asked)
    assert message in caught.value.message
    assert caught.value.hint


def test_beside_a_reference(stores: tuple[Path, Path], tmp_path: Path) -> None:
    figure = tmp_path / "beside.svg"
    code, text = told(stores[0], "richardson2017", figure=figure)
    assert code == 1
    assert "not comparable" in text
    assert "version simulated, published cassandra 3.9" in text
    assert "client threads 4, published 1" in text
    assert figure.stat().st_size > 1000
    chosen = ["platform=virtual-machine,ram_gb=2"]
    found = json.loads(told(stores[0], "richardson2017", fixed_b=chosen, as_json=True)[1])
    assert {one["cell"]["platform"] for one in found["beside"]} == {"virtual-machine"}
    assert {one["cell"]["link"] for one in found["beside"]} == {"nodal"}


CASSANDRA = made.STUDY.replace('"simulated"\nservice_us = 1000.0', '"cassandra"\nreplication_factor = 3').replace(
    'name = "ycsb-c"', 'name = "stress"'
)
"""A made store of 1 and 2 nodes that looks as if srinadhuni2018 had been run on it."""


def test_beside_a_reference_whose_mapping_is_data(tmp_path: Path) -> None:
    text = CASSANDRA.replace("nodes = [1, 2]", "nodes = [3, 5]").replace("threads = 4", "threads = 609")
    store = made.store(tmp_path, text=text)
    figure = tmp_path / "beside.svg"
    code, said = told(store, "srinadhuni2018", figure=figure)
    assert code == 1
    assert figure.stat().st_size > 1000
    for line in (
        "mean_ms_before", "mean_ms_after", "scale: records 100, published 1,000,000",
        "published: of the same run after two nodes had joined it; ours had that size from its start",
        "our trials have no samples of the processors", "our clusters kept their size",
        "no treatment of ours has replication factor 1",
    ):  # fmt: skip
        assert line in said
    assert "client threads" not in said
    code, said = told(store, "ec2_latency", fixed_b=["nodes_before=3,replication_factor=3"], as_json=True)
    found = json.loads(said)
    assert code == 1
    assert {one["cell"]["replication_factor"] for one in found["beside"]} == {"3"}
    laid = [one for one in found["beside"] if one["ours"]]
    assert {(one["statistic"], one["printed"]) for one in laid} == {
        ("mean_ms_before", "24.43"),
        ("mean_ms_after", "23.72"),
    }
    assert all(one["ours"]["low"] < one["ours"]["value"] and one["sentence"] for one in laid)
    assert [one["treatment"] for one in found["own"]] == ["3 nodes", "5 nodes"]


def test_a_reference_about_other_systems(stores: tuple[Path, Path]) -> None:
    code, said = told(stores[0], "hajji2016")
    assert code == 1
    assert "12 of 12 not comparable: system simulated, published Spark 1.4 over HDFS 2.6" in said
    assert "21 numbers: 19 not comparable, 2 no number" in said


def test_one_table_of_a_reference(stores: tuple[Path, Path]) -> None:
    found = json.loads(told(stores[0], "trial_time_summary", as_json=True)[1])
    assert {one["table"] for one in found["beside"]} == {"trial_time_summary"}


def test_own_treatments_that_cannot_be_told_apart(tmp_path: Path) -> None:
    text = CASSANDRA.replace("nodes = [1, 2]", "nodes = [3, 5]\nload.timeout_ms = [5000, 10000]")
    store = made.store(tmp_path, text=text)
    with pytest.raises(StudyError, match="compared with the same number") as caught:
        told(store, "srinadhuni2018")
    assert "--a load.timeout_ms=LEVEL" in caught.value.hint
    assert told(store, "srinadhuni2018", fixed_a=["load.timeout_ms=5000"])[0] == 1


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_of_the_table_is_wider_than_the_terminal(stores: tuple[Path, Path], tmp_path: Path, width: int) -> None:
    copy = made.store(tmp_path)
    _, text = told(stores[0], copy, response_name="throughput", width=width)
    lines = text.split("\n\n")[0].splitlines()[1:]
    assert max(map(len, lines)) <= width or width == 60
    assert any("undecided; " in line for line in lines)
    assert "…" not in "".join(lines)


def test_a_huge_effect_is_written_out() -> None:
    g = Estimate(value=-51.2, low=-204.6, high=-2.84, n=4, unit="", method="made up")
    one = SimpleNamespace(effect=g, effect_words="large")
    assert effect(one, interval=True) == "−51 [−205, −2.8] large"  # type: ignore[arg-type]


def test_an_interval_is_drawn_where_it_is() -> None:
    one = Estimate(value=0.0, low=-50.0, high=100.0, n=4, unit="%", method="made")
    low, high = forest_span([one])
    line = forest_line(one, low, high).plain
    assert len(line) == CELLS
    assert line.index("●") - line.index("├") == line.index("┤") - line.index("●")
    assert low > -100


def test_ticks_are_round_and_apart() -> None:
    assert ticks(0.18, 9.0) == [0.2, 0.5, 1.0, 2.0, 5.0]
    assert ticks(0.93, 1.12) == [0.95, 1.0, 1.05, 1.1]


def test_treatments_that_say_their_memory_stand_beside_machines_of_that_memory(tmp_path: Path) -> None:
    levels = "".join(
        f"[levels.hardware.vm-{gb}gb]\nnode.memory_mb = {1024 * gb}\nsystem.service_us = {1000 - gb}\n" for gb in (1, 2)
    )
    text = made.STUDY.replace("nodes = [1, 2]", 'nodes = [1, 3]\nhardware = ["vm-1gb", "vm-2gb"]') + levels
    store = made.store(tmp_path, text=text)
    assert (
        "ours are compared with virtual-machine 1 nodal, virtual-machine 2 nodal; --b"
        in told(store, "richardson2017")[1]
    )
    rows = json.loads(told(store, "richardson2017", as_json=True)[1])["beside"]
    cells = {
        (row["cell"]["ram_gb"], row["cell"]["cluster_size"])
        for row in rows
        if row["table"] == "trial_time_summary" and row["ours"] is not None
    }
    assert cells == {(memory, size) for memory in ("1", "2") for size in ("1", "3", "overall")}
    with pytest.raises(StudyError, match="would be compared with the same number"):
        told(store, "richardson2017", fixed_b=["ram_gb=1"])
