"""What limits an answer goes wherever the answer goes: screens, JSON, JUnit, Markdown."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from rich.console import Console

from steelyard.cli.commands import compare as compare_command
from steelyard.cli.commands import gate as gate_command
from steelyard.cli.commands import run as run_command
from steelyard.cli.commands.export import export
from steelyard.cli.commands.report import report
from steelyard.cli.commands.status import status
from steelyard.reading.comparison import compare, limits_of
from steelyard.reading.opened import Opened
from steelyard.report.notebook import read
from steelyard.serve.finished_answers import answer_of
from steelyard.shown_text import markdown
from tests.unit.cli.screen import printed
from tests.unit.verify import made


def test_both_studies_limits_are_told_once_and_those_of_one_by_its_name(base: Opened, other: Opened) -> None:
    assert limits_of(base, base) == base.results.caveats != ()
    found = limits_of(base, other)
    shared = [text for text in base.results.caveats if text in other.results.caveats]
    assert list(found[: len(shared)]) == shared
    assert {text.partition(": ")[2] for text in found[len(shared) :]} == {
        text for one in (base, other) for text in one.results.caveats if text not in shared
    }


def test_limits_are_in_every_output_of_a_comparison_and_a_gate(tmp_path: Path, base: Opened, other: Opened) -> None:
    a, b = base.store.folder, other.store.folder
    limits = limits_of(base, other)
    screen = printed(lambda: compare_command.compare(str(a), str(b)), width=400).out
    assert all(text in screen for text in limits[:3])
    data = json.loads(printed(lambda: compare_command.compare(str(a), str(b), as_json=True)).out)
    assert data["limits"] == list(limits) == list(compare(read(a), read(b)).limits)
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    screen = printed(
        lambda: gate_command.gate(b, against=a, margin_percent=2.0, junit=junit, markdown=summary), width=400
    ).out
    assert all(text in screen for text in limits[:3])
    properties = [(one.get("name"), one.get("value")) for one in ElementTree.parse(junit).iter("property")]
    assert [value for name, value in properties if name == "limit"] == list(limits)
    assert all(markdown(text) in summary.read_text(encoding="utf-8") for text in limits)


COLD = "The servers were not warmed up before the trials"
OFF = "The check on other programs (`limits.background_cpu_fraction = 1`) was switched off"
WEAK = """
[server_warm_up]
mode = "off"
[limits]
background_cpu_fraction = 1
"""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of servers that were not warmed up, on a machine that was not watched."""
    text = made.STUDY.replace("service_us", 'warm_up = "4:100"\nservice_us') + WEAK
    return made.store(tmp_path_factory.mktemp("cold"), text=text)


def outputs(cold: Path, place: Path) -> Iterator[tuple[str, str]]:
    """Every output that has an answer or numbers of a study, in words."""
    console = Console(file=io.StringIO(), width=400)
    run_command.answer(cold, console)
    yield "run", console.file.getvalue()  # type: ignore[attr-defined]
    yield "status", printed(lambda: status(cold), 400).out
    yield "status --json", printed(lambda: status(cold, as_json=True)).out
    sides = {"fixed_a": ["nodes=1"], "fixed_b": ["nodes=2"]}
    yield "compare", printed(lambda: compare_command.compare(str(cold), **sides), 400).out
    yield "compare --json", printed(lambda: compare_command.compare(str(cold), **sides, as_json=True)).out
    junit, summary = place / "gate.xml", place / "gate.md"
    against = {"against": cold, "margin_percent": 2.0}
    yield "gate", printed(lambda: gate_command.gate(cold, junit=junit, markdown=summary, **against), 400).out
    yield "gate --json", printed(lambda: gate_command.gate(cold, as_json=True, **against)).out
    yield "gate --junit", " ".join(str(one.get("value")) for one in ElementTree.parse(junit).iter("property"))
    yield "gate --markdown", summary.read_text(encoding="utf-8").replace("\\", "")
    page = place / "page.html"
    yield "report --json", printed(lambda: report(cold, output=page, as_json=True)).out
    yield "report", page.read_text(encoding="utf-8").replace("<code>", "`").replace("</code>", "`")
    made_of = {name: place / name for name in ("hdr", "openmetrics", "otava", "parquet", "markdown")}
    printed(lambda: export(cold, **made_of))
    yield "export --hdr", next(made_of["hdr"].iterdir()).read_text(encoding="utf-8").partition("\n")[0]
    yield "export --openmetrics", made_of["openmetrics"].read_text(encoding="utf-8")
    yield "export --otava", (made_of["otava"] / "otava.yaml").read_text(encoding="utf-8")
    yield "export --parquet", pl.read_parquet_metadata(made_of["parquet"])["steelyard.limits"]
    yield "export --markdown", made_of["markdown"].read_text(encoding="utf-8").replace("\\", "")
    yield "serve", " ".join(answer_of(cold).limits)
    yield "notebook", read(cold)._repr_html_().replace("<code>", "`").replace("</code>", "`")


def test_cold_servers_and_a_check_that_was_switched_off_are_said_in_every_output(cold: Path, tmp_path: Path) -> None:
    said = dict(outputs(cold, tmp_path))
    assert read(cold).results.caveats[0].startswith(OFF)
    assert [name for name, text in said.items() if COLD not in text] == []
    assert [name for name, text in said.items() if OFF not in text] == []
