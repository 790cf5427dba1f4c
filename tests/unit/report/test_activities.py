"""The section of activities: there where a store has any, and nothing of it elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from steelyard.cli.commands.report import report
from steelyard.plan import expand
from steelyard.store.write import StoreWriter
from steelyard.study.read import read_text
from tests.unit.report import elastic, growing, synthetic


def section(page: str, anchor: str) -> str:
    """The words of a section of a page."""
    html = page.partition(f'<section id="{anchor}"')[2].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("growing")
    report(growing.store(folder), output=folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def test_the_page_has_a_row_for_each_phase_and_each_node(page: str) -> None:
    words = section(page, "activities")
    assert "Activities: nodes that joined, left or were disrupted" in words
    assert "4 activities in 4 attempts: 4 done. A trial is one observation" in words
    assert "streaming 4.38 [3.66, 5.09] 3.850 4.900" in words
    assert "a node in all 12.6" in words
    inside = page.partition('id="activities"')[2].partition("</section>")[0]
    order = [inside.index(f'id="table-{name}"') for name in ("activity-response", "time-to-event", "activity-phase")]
    assert order == sorted(order), "what it costs clients comes before the phases"
    assert inside.index('id="table-activity-phase"') < inside.index('id="table-activities"')
    folded = inside.partition('id="table-activity-phase"')[2]
    assert folded.index("<details") < folded.index('id="table-activities"'), "the rows of nodes are folded"


def test_whose_clock_and_whose_wait_it_is_stands_next_to_the_numbers(page: str) -> None:
    words = section(page, "activities")
    assert "exact to 1 ms of that node&#39;s clock" in words
    assert "0.2 to 4.2 s of this are the client&#39;s own wait" in words.partition("discovery")[2]


def test_trials_under_a_policy_that_never_scaled_out_have_a_table(tmp_path: Path) -> None:
    text = growing.STUDY.replace("times = [[20, 5]]", "max_nodes = 5\nthreshold = 90.0").replace(
        '["none", "scheduled"]', '["none", "threshold"]'
    )
    study = read_text(text)
    with StoreWriter(tmp_path, study.study.name) as writer:
        writer.intend(study, text, expand(study))
        for record in growing.records(text):
            draft = writer.draft(record.id, record.attempt)
            draft.intervals("l1", growing.intervals(record.begun_s))
            draft.seal(record.model_copy(update={"activities": ()}))
        folder = writer.folder
    report(folder, output=tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = section(html, "activities")
    assert "threshold scaled out 1 scale-out 4 0 0 [0, 60] 60 60" in words
    assert "0 of 4 trials" in html
    assert "0 activities" not in words


def test_the_plane_of_elasticity_and_its_table_are_in_the_answer(tmp_path: Path, page: str) -> None:
    report(growing.store(tmp_path, elastic.STUDY), output=tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = section(html, "answer")
    assert "0, 0 is perfect: the lower left corner" in words
    assert "theta under, % of the demand (too few nodes)" in words
    assert "Smallest shortage of nodes" in words
    assert "While nodes joined" not in words, "the table of activities has what each cost"
    inside = html.partition('id="answer"')[2].partition("</section>")[0]
    order = [
        inside.index(text) for text in ("Smallest shortage", 'id="elasticity"', "What limits", 'id="table-elasticity"')
    ]
    assert order == sorted(order)
    assert "data-tip" in inside.partition('id="table-elasticity"')[0]
    assert 'id="table-elasticity"' not in html.partition('id="activities"')[2]
    assert "analysis.demand" not in section(page, "activities"), "a schedule is no policy that decides"
    assert "theta under" not in section(page, "answer")


def test_curves_around_the_decision_follow_the_tables_of_what_it_costs(page: str) -> None:
    inside = page.partition('id="activities"')[2].partition("</section>")[0]
    order = [inside.index(f'id="{name}"') for name in ("table-time-to-event", "aligned", "table-activity-phase")]
    assert order == sorted(order)
    words = section(page, "activities")
    assert "4 trials: no band" in words
    assert "throughput, operations/s" in words
    assert 'id="table-aligned"' not in page, "the figure shows it; its numbers are below it and in files"


def test_what_a_join_costs_is_in_the_answer_and_in_the_section(page: str) -> None:
    answer = section(page, "answer")
    assert (
        "While nodes joined (25.2 s): 99th percentile of response time +100% against before, +100% against the control"
        in answer
    )
    assert "against the control" in section(page, "activities")


def test_time_courses_show_the_nodes_in_service(page: str) -> None:
    words = section(page, "within")
    assert words.count("Below, the nodes in service while nodes joined or left") == 4


def test_a_store_without_activities_has_no_such_section(tmp_path: Path) -> None:
    report(synthetic.stored(tmp_path), output=tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="activities"' not in text
    assert "nodes in service" not in text


def test_both_tables_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(growing.store(tmp_path), output=tmp_path / "page.html", tables=tmp_path / "tables", as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["activities"]["rows"]) == 8
    assert len(printed["activity_phase"]["rows"]) == 12
    assert len(printed["aligned"]["rows"]) == 2 * 60
    assert (tmp_path / "tables" / "activities.csv").read_text(encoding="utf-8").count("\n") == 9
