"""A store of a study with named levels: page, tables, methods text and comparisons speak of the factor by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.regression import Regression
from steelyard.cli.commands.compare import EXIT_DECIDED, compare
from steelyard.cli.commands.report import report
from steelyard.cli.commands.status import status
from steelyard.cli.commands.verify import verify
from steelyard.model.study import Study
from steelyard.reading.reading import read
from steelyard.report.data.presentation import view
from steelyard.report.prose import method_and_facts
from steelyard.report.prose.method_and_facts import asked
from steelyard.report.tables.named_levels import named_levels
from tests.unit.cli.screen import printed
from tests.unit.verify import made

LEVELS = """
[levels.machine.small]
nodes = 1
system.service_us = 900.0
number = 1
unit = "GB"
[levels.machine.middle]
nodes = 2
system.service_us = 800.0
number = 2
[levels.machine.large]
nodes = 4
system.service_us = 700.0
number = 8
"""
TEXT = made.STUDY.replace("nodes = [1, 2]", 'machine = ["small", "large", "middle"]') + LEVELS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("named"), text=TEXT)


def test_the_table_says_what_each_level_sets() -> None:
    table = named_levels(made.study(TEXT))
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["machine", "small", "nodes = 1, system.service_us = 900.0", "1 GB"],
        ["machine", "large", "nodes = 4, system.service_us = 700.0", "8"],
        ["machine", "middle", "nodes = 2, system.service_us = 800.0", "2"],
    ]
    assert named_levels(made.study()) is None


def test_the_page_and_the_methods_text_say_what_each_level_sets(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert printed(lambda: report(store, output=page)).code == 0
    html = page.read_text(encoding="utf-8")
    assert "What each named level sets." in html
    assert "on clusters of 1, 4 and 2 nodes" in html
    methods = " ".join(printed(lambda: report(store, methods=True)).out.split())
    assert "machine small (1 GB): nodes = 1, system.service_us = 900.0" in methods
    assert "levels.machine" not in methods


def test_a_level_stands_for_its_number_in_regressions_and_on_axes(store: Path) -> None:
    results = read(store).report_input().results
    assert results.size_factor == "machine"
    (line,) = results.of(Regression)
    assert line.published is not None
    xs = [float(number) for number in (1, 8, 2)]
    assert results.numbers == {"machine": tuple(xs)}
    positions = view(results).positions
    assert (positions.places, positions.name) == (xs, "machine, GB")
    ends = [line.published.intercept.value + line.published.slope.value * x for x in (1, 8)]
    assert ends[0] > ends[1] > 0


def test_two_levels_are_compared_by_name_and_their_fields_are_what_was_asked(store: Path) -> None:
    answer = printed(lambda: compare(str(store), None, fixed_a=["machine=small"], fixed_b=["machine=large"]), 200)
    assert answer.code == EXIT_DECIDED
    assert "Machine large against machine small: faster" in answer.out
    assert "system.service_us: 900.0 -> 700.0" in answer.out
    assert "differ in more" not in answer.out


def test_tables_for_a_paper_and_status_have_its_name(store: Path, tmp_path: Path) -> None:
    assert printed(lambda: report(store, output=tmp_path / "p.html", tables=tmp_path / "tables")).code == 0
    tex = (tmp_path / "tables" / "summary.tex").read_text(encoding="utf-8")
    assert "machine" in tex
    assert "small" in tex
    assert "machine small" in printed(lambda: status(store), 200).out


def test_the_store_is_verified_with_all_its_numbers(store: Path) -> None:
    answer = printed(lambda: verify(store), 200)
    assert answer.code == 0, answer.out + answer.err


def test_settings_that_differ_from_the_defaults_leave_out_what_levels_set() -> None:
    names = {fact.name for fact in asked(made.study(TEXT))}
    assert "system.service_us" not in names
    assert not {name for name in names if name.startswith("levels")}


def test_the_stored_study_has_its_levels(store: Path) -> None:
    stored = json.loads((store / "study.json").read_text(encoding="utf-8"))
    assert stored["levels"]["machine"]["large"] == {
        "number": 8.0, "unit": "", "nodes": 4, "system.service_us": 700.0,
    }  # fmt: skip
    assert Study.model_validate(stored) == made.study(TEXT)


@pytest.mark.parametrize(("numbers", "sizes"), [((1, 2, 4), {"machine"}), ((1, 2, 8), set())])
def test_laws_run_over_a_named_factor_that_counts_nodes(
    numbers: tuple[int, ...], sizes: set[str], tmp_path: Path
) -> None:
    text = TEXT
    for level, number, written in zip(("small", "middle", "large"), numbers, (1, 2, 8), strict=True):
        at = text.index(f"[levels.machine.{level}]")
        text = text[:at] + text[at:].replace(f"number = {written}\n", f"number = {number}\n", 1)
    fits = read(made.store(tmp_path, text=text)).report_input().results.of(LawFit)
    assert {fit.factor for fit in fits} == sizes
    assert all(fit.n == 9 and fit.sizes == 3 for fit in fits)


def test_levels_and_settings_of_a_listed_design_are_known_to_the_page() -> None:
    listed = [f"[[design.treatments]]\nmachine = '{level}'\nsystem = 'simulated'\n" for level in ("large", "small")]
    text = made.STUDY.replace("nodes = [1, 2]\n", "").replace("[design]\n", '[design]\nkind = "listed"\n')
    chosen = made.study(text + "\n".join(listed) + LEVELS)
    table = named_levels(chosen)
    assert table is not None
    assert [row[1].text for row in table.rows] == ["large", "small"]
    assert chosen.values_of(("nodes", "site.nodes"), 9) == (4, 1)
    names = {fact.name for fact in asked(chosen)}
    assert not names & {"system.name", "site.nodes", "system.service_us"}
    assert "load.threads" in names
    assert "What each named level sets: machine large (8): nodes = 4" in method_and_facts._named_levels(chosen)
