"""The agent's operations for the orders that Python writes, held against what YCSB's CoreWorkload itself did."""

from __future__ import annotations

import json
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2_contingency

from steelyard.node import agent
from steelyard.plugins import find
from tests.unit.wire import orders
from tests.unit.workload.reference import EXAMPLE, REFERENCE, settings_of

pytestmark = pytest.mark.agent

CASES = sorted(REFERENCE["workloads"])
OPERATIONS = 20_000
P_LIMIT = 1e-4
RECORDS = 1000
TOLERANCE = 0.02
TIMEOUT_S = 60


def operations(tmp_path: Path, changes: dict[str, Any], *options: str) -> list[dict[str, Any]]:
    path = tmp_path / "order.json"
    path.write_text(orders.order(**changes).text)
    argv = [str(agent.find()), "ops", "--order", str(path), *options]
    done = subprocess.run(argv, check=True, timeout=TIMEOUT_S, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def order_of(case: str) -> dict[str, Any]:
    """The order that asks for what the reference did: one thread, as many operations."""
    properties = REFERENCE["workloads"][case]["properties"]
    name = f"ycsb-{case}" if len(case) == 1 else "ycsb"
    module = find.find("workload", name)
    workload = module.create(module.Settings.model_validate(settings_of(properties)))
    return {
        "work": workload.order(),
        "seed": 5,
        "stop": {"operations": int(properties["operationcount"])},
    }


def p_value(ours: Counter[int], theirs: Sequence[int]) -> float:
    """Two-sample chi-square over cells 0, 1, ...; cells with few counts are joined with the next."""
    table, row = [], [0, 0]
    for cell, count in enumerate(theirs):
        row = [row[0] + ours[cell], row[1] + count]
        if sum(row) >= 20:
            table.append(row)
            row = [0, 0]
    assert table, "nothing to compare"
    return float(chi2_contingency(table).pvalue) if len(table) > 1 else 1.0


def alike(values: Iterable[int], cells: Sequence[Sequence[int]], what: str) -> None:
    """Values fall into the reference's cells [low, high, count] as the reference's did."""
    singles = {low: cell for cell, (low, high, _) in enumerate(cells) if low == high}
    ranges = [(low, cell) for cell, (low, high, _) in enumerate(cells) if low != high]
    lows = [low for low, _ in ranges]
    ours = Counter(singles[v] if v in singles else ranges[bisect_right(lows, v) - 1][1] for v in values)
    p = p_value(ours, [count for _, _, count in cells])
    assert p > P_LIMIT, f"{what}: p = {p}"


@pytest.mark.parametrize("case", CASES)
def test_operations_are_distributed_as_ycsbs(case: str, tmp_path: Path) -> None:
    reference, order = REFERENCE["workloads"][case], order_of(case)
    # the key space grows as inserts come: there the whole of the load is compared
    grows = reference["first_inserts"]
    count = order["stop"]["operations"] if grows else OPERATIONS
    done = operations(tmp_path, order, "--count", str(count))
    kinds = sorted(reference["kinds"])
    found = Counter(kinds.index(operation["kind"]) for operation in done)
    assert p_value(found, [reference["kinds"][kind] for kind in kinds]) > P_LIMIT
    inserts = [operation["key_number"] for operation in done if operation["kind"] == "insert"]
    assert inserts == list(range(RECORDS, RECORDS + len(inserts)))
    assert inserts[:5] == grows
    requests = [operation for operation in done if operation["kind"] != "insert"]
    if "keys" in reference:
        alike_below(RECORDS, [operation["key_number"] for operation in requests], reference["keys"], "keys")
    if "distances" in reference:
        cells = reference["distances"]
        alike_below(cells[-1][0], list(distances(done)), cells, "distances from the newest key")
    every = order["work"].read_all_fields
    fields = [one["field"] for one in requests if one["kind"] in ("update", "read-modify-write") or not every]
    if fields:
        assert sum(count for _, _, count in reference["fields"]) > 0
        alike(fields, reference["fields"], "fields")
    if "scan_lengths" in reference:
        scans = [operation["scan_length"] for operation in done if operation["kind"] == "scan"]
        alike(scans, reference["scan_lengths"], "scan lengths")


def alike_below(limit: int, values: Sequence[int], cells: Sequence[Sequence[int]], what: str) -> None:
    """Values below the limit are drawn alike; the share of the others is the same within a tolerance, as it depends on
    when the inserts happened to come, which a chi-square does not allow for."""
    alike((value for value in values if value < limit), [cell for cell in cells if cell[0] < limit], what)
    theirs = sum(cell[2] for cell in cells if cell[0] >= limit) / sum(cell[2] for cell in cells)
    ours = sum(value >= limit for value in values) / len(values)
    assert ours == pytest.approx(theirs, abs=TOLERANCE + len(values) ** -0.5), what


def distances(done: Iterable[dict[str, Any]]) -> Iterable[int]:
    """How far each request's key is from the newest."""
    newest = RECORDS - 1
    for operation in done:
        if operation["kind"] == "insert":
            newest = operation["key_number"]
        else:
            yield newest - operation["key_number"]


@pytest.mark.parametrize("case", [case for case in CASES if "value_lengths" in REFERENCE["workloads"][case]])
def test_value_lengths_are_distributed_as_ycsbs(case: str, tmp_path: Path) -> None:
    done = operations(tmp_path, order_of(case), "--count", "8000", "--values")
    lengths = [len(value) for operation in done for value in operation["values"].values()]
    assert len(lengths) > 1000, "too few for a chi-square"
    alike(lengths, REFERENCE["workloads"][case]["value_lengths"], "value lengths")


def test_values_are_what_the_operation_writes(tmp_path: Path) -> None:
    order = order_of("uniform")
    for operation in operations(tmp_path, order, "--count", "300", "--values"):
        written = set(operation["values"])
        if operation["kind"] == "insert":
            assert written == set(order["work"].fields)
        elif operation["kind"] in ("update", "read-modify-write"):
            assert written == {f"field{operation['field']}"}
        else:
            assert not written


def test_shares_and_beginnings_are_parts_of_the_whole(tmp_path: Path) -> None:
    order = {**order_of("d"), "schedule": {"kind": "closed", "threads": 1}}
    order["work"] = order["work"].model_copy(update={"insert_lag": 10})
    whole = operations(tmp_path, order, "--count", "400")
    assert operations(tmp_path, order, "--first", "150", "--count", "250") == whole[150:]
    for index in range(3):
        part = operations(tmp_path, {**order, "share": {"index": index, "of": 3}}, "--count", "100")
        assert part == whole[index:300:3]


def test_populate_writes_every_record(tmp_path: Path) -> None:
    done = operations(tmp_path, {**order_of("a"), "action": "populate"}, "--count", "1000")
    assert [operation["key_number"] for operation in done] == list(range(1000))
    assert {operation["kind"] for operation in done} == {"insert"}
    assert done[7]["key"] == "user5465015992139406178"


def test_a_wrong_order_is_refused_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps({**EXAMPLE, "share": {"index": 3, "of": 2}}))
    argv = [str(agent.find()), "ops", "--order", str(path)]
    done = subprocess.run(argv, check=False, timeout=TIMEOUT_S, capture_output=True, text=True)
    assert done.returncode != 0
    assert "share.index: read 3; allowed: 0 up to share.of - 1" in done.stderr
