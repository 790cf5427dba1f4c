"""What the shipped tables contradict: every finding, each recomputed by hand in the docs, and no other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from steelyard.reference.audit import headings, shipped_tables
from steelyard.reference.audit.finding import KINDS
from steelyard.reference.printed import Printed
from steelyard.reference.tables import Table, UnknownReference, tables

Ships = Callable[[Mapping[str, Table]], None]


@pytest.fixture
def ships(monkeypatch: pytest.MonkeyPatch) -> Ships:
    """Puts other tables in the place of those in the package, which every audit reads for itself."""

    def ship(every: Mapping[str, Table]) -> None:
        monkeypatch.setattr("steelyard.reference.tables.tables", lambda: every)
        monkeypatch.setattr(shipped_tables, "tables", lambda: every)

    return ship


@pytest.fixture(scope="module")
def everything() -> shipped_tables.Audit:
    return shipped_tables.audit("all")


def test_what_is_found_and_nothing_else(everything: shipped_tables.Audit) -> None:
    assert [(one.table, one.line, one.kind, one.weight, one.column, one.printed) for one in everything.findings] == [
        ("ec2_effect_size", 9, "effect size", "contradiction", "cohens_d_reported", "2.34"),
        ("trial_time_summary, table 36", 506, "count", "contradiction", "count", "42"),
        ("trial_time_summary, table 36", 509, "count", "contradiction", "count", "84"),
        ("bare_metal_docker", 8, "copied", "remark", "bare_metal", "3.07"),
        ("trial_time_summary, table 43", 646, "two groups", "remark", "std", "9e+05"),
        ("trial_time_summary, table 43", 646, "bounds", "remark", "50%", "2.8e+02"),
    ]


def test_the_effect_size_by_hand(everything: shipped_tables.Audit) -> None:
    finding = everything.findings[0]
    below = math.sqrt((3.03**2 + 2.94**2) / 2)
    assert (89 - 87) / below == pytest.approx(0.67, abs=0.005)
    assert finding.low == pytest.approx(1 / math.sqrt((3.035**2 + 2.945**2) / 2))
    assert finding.high == pytest.approx(3 / math.sqrt((3.025**2 + 2.935**2) / 2))
    assert finding.off_by == pytest.approx(2.335 - 3 / math.sqrt((3.025**2 + 2.935**2) / 2))
    assert "differ by 6.959 to 7.012" in finding.because


def test_how_much_was_looked_at(everything: shipped_tables.Audit) -> None:
    made = everything.made
    assert (made["count"], made["order"], made["range"]) == (113, 1130, 113)
    assert (made["slope"], made["intercept"], made["correlation"], made["p-value"]) == (70, 70, 70, 70)
    assert made["ratio"] == 235
    assert made["no data"] == 359
    assert made["effect size"] == 8
    assert list(everything.left_out) == ["abramova2014_runtime: one number a cell, from which nothing else follows"]


def test_every_table_has_an_audit() -> None:
    for name in tables():
        assert shipped_tables.audit(name).name == name
    with pytest.raises(UnknownReference):
        shipped_tables.audit("nobody2020")


@pytest.mark.parametrize(
    ("table", "line", "column", "text", "kinds"),
    [
        ("regression", 6, "intercept", "4.6e+04", {"intercept"}),
        ("regression", 6, "slope", "4.6e+04", {"slope", "p-value"}),
        ("regression", 2, "p_value", "2.1e-03", {"p-value"}),
        ("regression", 7, "slope", "1.2e+02", {"no data"}),
        ("speedup", 2, "value", "0.26", {"ratio"}),
        ("speedup", 3, "value", "0.26", {"no data"}),
        ("ec2_effect_size", 2, "cohens_d_reported", "1.9", {"effect size"}),
        ("ec2_cpu_utilization", 2, "std_percent", "79", {"deviation"}),
        ("ec2_latency", 2, "scaled_out_at_s", "29", {"bounds"}),
        ("spark_job_time", 10, "seconds", "126.5", {"percentage"}),
        ("http_server", 2, "network_mbit_per_s", "28.5", {"product"}),
        ("bare_metal_docker", 4, "docker", "1795.61", {"mean"}),
    ],
)
def test_a_misprint_in_a_shipped_table_is_found(
    ships: Ships, table: str, line: int, column: str, text: str, kinds: set[str]
) -> None:
    every = dict(tables())
    before = {(one.line, one.column) for one in shipped_tables.audit(table).findings}
    rows = list(every[table].rows)
    (row,) = (one for one in rows if one.line == line)
    number = shipped_tables.parse(text, every[table].columns[column].rounding)
    assert row.numbers[column] != number
    rows[rows.index(row)] = row.model_copy(update={"numbers": {**row.numbers, column: number}})
    every[table] = every[table].model_copy(update={"rows": tuple(rows)})
    ships(every)
    found = [one for one in shipped_tables.audit(table).findings if (one.line, one.column) not in before]
    assert {one.kind for one in found} == kinds


def test_the_page_says_what_was_found(everything: shipped_tables.Audit) -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "references.md").read_text(encoding="utf-8")
    assert f"makes {sum(everything.made.values()):,} checks" in page
    for name in tables():
        assert f"| `{name}` |" in page
    for one in everything.findings:
        assert one.printed in page


def test_every_kind_of_check_is_explained() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "howto" / "audit-a-table.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert kind.removeprefix("pooled ") in page, kind
    table = page[page.index("| number | headings") :]
    shown = {headings.read(text).statistic for text in re.findall(r"`([^`]+)`", table)}
    assert shown >= {*headings.SUMMARIES, *headings.WHOLE, *headings.ROLES, "p95", "p99.9"}


def test_the_case_of_the_powers_of_ten_decides_nothing(everything: shipped_tables.Audit, ships: Ships) -> None:
    """With `1e+04` as 9500 to 10500, as the transcription's notes have it, the findings are the same."""

    def wider(printed: Printed) -> Printed:
        if printed.low is None or printed.high is None or printed.value is None or "1e" not in f"{printed.value:.0e}":
            return printed
        half = max(printed.high - printed.value, printed.value - printed.low)
        return printed.model_copy(update={"low": printed.value - half, "high": printed.value + half})

    every = {
        name: table.model_copy(
            update={
                "rows": tuple(
                    row.model_copy(update={"numbers": {key: wider(one) for key, one in row.numbers.items()}})
                    for row in table.rows
                )
            }
        )
        for name, table in tables().items()
    }
    ships(every)
    assert [one.printed for one in shipped_tables.audit("all").findings] == [one.printed for one in everything.findings]
