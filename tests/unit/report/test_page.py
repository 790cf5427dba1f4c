"""The page holds everything, needs nothing, and lets no text of the store become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import steelyard
from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.tables import sources, tables
from steelyard.format import NONE
from steelyard.model.study import Study
from steelyard.model.trial import by_cell
from steelyard.reading import time_courses
from steelyard.reading.node_traces import Trace, median_trials
from steelyard.reading.report_input import ReportInput
from steelyard.reading.server_metrics import WATCHED
from steelyard.reference.comparison import PublishedPair
from steelyard.report import drawn_trials
from steelyard.report.basics import embedded_data
from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.draw.svg import Element, Picture
from steelyard.report.forms import OWN
from steelyard.report.page import build
from steelyard.report.prose import provenance
from steelyard.report.tables import analysed
from steelyard.report.tables.generic import Cell, ShownColumn, Table
from tests.unit.report import synthetic

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


def page_input(study: Study, *, faults: bool = True) -> ReportInput:
    records = synthetic.records(study, faults=faults)
    results = analyse(records, study, seed=study.design.seed)
    used = {(point.trial_id, point.attempt): point.value for point in results.of(Point) if point.used}
    shown = median_trials(by_cell(one for one in records if one.key in used and not one.control), used)
    middle = {(record.id, record.attempt) for record in shown}
    courses = [
        time_courses.timeline(
            record,
            synthetic.intervals(record),
            value=used.get((record.id, record.attempt)),
            middle=(record.id, record.attempt) in middle,
        )
        for record in time_courses.picked(records, used, most=60)
    ]
    return ReportInput(
        study=study,
        results=results,
        records=records,
        traces=[Trace(record, synthetic.samples(record)) for record in shown],
        timelines=[one for one in courses if one is not None],
        curves=synthetic.curves(shown),
        facts=synthetic.facts(records[-1]),
        tables=tables(results),
    )


class Tags(HTMLParser):
    """Counts tags, gathers ids and every attribute that can load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "action", "srcset"):
                self.loads.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)


@pytest.fixture(scope="module")
def page() -> str:
    return build(page_input(synthetic.study()))


@pytest.fixture(scope="module")
def made() -> ReportInput:
    """Of one factor with two sizes."""
    return page_input(synthetic.study(workloads=("A",)))


def _parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def test_it_is_one_file_that_loads_nothing(page: str) -> None:
    tags = _parsed(page)
    assert all(load.startswith("#") or load == "data:," for load in tags.loads)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert re.findall(r"url\((?!#)", page) == []


def test_the_axes_of_every_figure_are_checked_those_of_further_responses_too() -> None:
    study = synthetic.study(nodes=(1, 3), workloads=("A",))
    study = study.model_copy(
        update={"analysis": study.analysis.model_copy(update={"responses": ("throughput_per_s",)})}
    )
    page = build(page_input(study))
    (evidence,) = re.findall(r"Truncated axes</td>\s*<td[^>]*>([^<]*)", page)
    assert page.count("does not start at 0") == evidence.count("1 axis, from") == 2
    assert "figure “Throughput”: 1 axis, from" in evidence


def test_it_has_every_part_in_order(page: str) -> None:
    anchors = re.findall(r'<section id="([a-z-]+)"', page)
    expected = (
        "answer provenance effects every-cell interactions sensitivity response-time within nodes spread validity "
        "facts method every-trial terms"
    )
    assert anchors == expected.split()
    assert (
        page.index("How does the execution time")
        < page.index('id="answer"')
        < page.index('id="answers"')
        < page.index('id="main"')
    )


def test_figures_and_tables_are_numbered_in_the_order_of_the_page(page: str) -> None:
    for kind in ("Figure", "Table"):
        for apart in ("", "S"):
            numbers = [int(number) for number in re.findall(rf"<b>{kind} {apart}(\d+)\.</b>", page)]
            assert numbers == list(range(1, len(numbers) + 1))
            assert numbers


def test_what_the_short_print_leaves_out_is_numbered_apart(page: str) -> None:
    for section in re.findall(r'<section id="[a-z-]+" class="on-request".*?</section>', page, re.DOTALL):
        assert not re.search(r"<b>(?:Figure|Table) \d", section)
    assert not re.search(r'<details class="table">\s*<summary>[^<]*</summary>\s*<p class="caption"><b>Table \d', page)


def test_ids_are_unique(page: str) -> None:
    ids = _parsed(page).ids
    assert len(ids) == len(set(ids))


def test_numbers_of_a_cell_and_its_exclusions_are_shown(page: str) -> None:
    assert "invalid: a probe gap" in page
    assert "7.2 s against 5 s" in page
    assert "node n1 was killed for memory" in page
    assert "2a 1b" in page


def test_the_policy_allows_the_own_script_only(page: str) -> None:
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_every_column_head_has_a_definition_and_the_data_are_inside(page: str) -> None:
    data = embedded_data.unpack(page.partition('id="data">')[2].partition("</script>")[0])
    assert len(data["trials"]["rows"]) >= 40
    assert set(data["trials"]) == {"columns", "rows"}
    heads = re.findall(r'<th scope="col"([^>]*)>([^<]*)', page)
    bare = {name for attributes, name in heads if name.strip() and "title=" not in attributes}
    assert bare == set()


def test_equal_input_gives_an_equal_page() -> None:
    first, second = (build(page_input(synthetic.study(nodes=(1,), workloads=("A",)))) for _ in range(2))
    assert first == second


def test_no_text_of_the_store_becomes_markup(page: str) -> None:
    study = synthetic.study(title=HOSTILE, question=HOSTILE, workloads=("A",), trials=2, warm_up_trials=0)
    about = study.study.model_copy(update={"notes": HOSTILE, "source": HOSTILE})
    made = synthetic.records(study)
    hostile = {"id": HOSTILE, "start": HOSTILE, "shares": (HOSTILE,), "versions": {HOSTILE: HOSTILE}}
    records = [
        record.model_copy(update={**hostile, "treatment": {**record.treatment, "workload": HOSTILE}}) for record in made
    ]
    study = study.model_copy(update={"study": about, "factors": {"nodes": (1, 3), "workload": (HOSTILE,)}})
    results = analyse(records, study, seed=1)
    found = build(
        ReportInput(
            study=study,
            results=results,
            records=records,
            tables=tables(results),
            traces=[Trace(records[0], synthetic.samples(made[0]))],
            facts={"machine": {HOSTILE: HOSTILE}, "system:n1": {HOSTILE: HOSTILE}},
        )
    )
    tags = _parsed(found)
    assert tags.tags.count("script") == _parsed(page).tags.count("script") == 3
    assert "img" not in tags.tags
    assert tags.handlers == []
    assert HOSTILE not in found


def test_a_thousand_trials_stay_small() -> None:
    study = synthetic.study(nodes=(1, 3, 6), starts=4, trials=21, warm_up_trials=9)
    made = page_input(study)
    assert len(made.records) >= 1000
    page = build(made)
    assert len(page.encode()) < 3_000_000


def test_a_study_without_factors_and_with_nothing_valid_still_has_a_page() -> None:
    study = synthetic.study(nodes=(1,), workloads=("A",), starts=1, trials=1, warm_up_trials=0)
    records = [
        record.model_copy(update={"verdict": synthetic.FAULT, "responses": type(record.responses)()})
        for record in synthetic.records(study, faults=False)
    ]
    page = build(ReportInput(study=study, results=analyse(records, study, seed=1), records=records))
    assert "node n1 was killed for memory" in page


PUBLISHED_FORMS = {"effect-line", "differential", "speedup", "coefficient", "one-way", "post-hoc"}


def _tables_of(page: str, section: str) -> set[str]:
    """Names of a section's tables."""
    inside = page.partition(f'<section id="{section}"')[2].partition("</section>")[0]
    return set(re.findall(r'<table id="(?:table-)?([^"]*)"', inside))


def test_every_table_of_the_analysis_is_on_the_page() -> None:
    study = synthetic.study(nodes=(1, 3, 6))
    made = page_input(study)
    ids = set(_parsed(build(made)).ids)
    for name, source in sources(made.results).items():
        if source.statistic.row not in OWN and analysed.telling(source, made.results.response).rows:
            assert f"table-{name.replace('_', '-')}" in ids, name


@pytest.mark.parametrize("source", ["richardson2017", ""])
def test_published_forms_are_in_the_appendix_unless_the_study_names_a_publication(source: str) -> None:
    study = synthetic.study(nodes=(1, 3, 6), starts=3, workloads=("A", "C"))
    study = study.model_copy(update={"study": study.study.model_copy(update={"source": source})})
    page = build(page_input(study))
    forms = {name for name in PUBLISHED_FORMS if f'<table id="table-{name}"' in page}
    assert {"effect-line", "differential", "speedup", "one-way", "post-hoc"} <= forms
    assert _tables_of(page, "appendix") & PUBLISHED_FORMS == (set() if source else forms)
    assert "comparisons" in _tables_of(page, "effects")
    assert {"effect", "anova"} <= _tables_of(page, "sensitivity")


def test_three_tables_say_whether_the_numbers_moved(page: str) -> None:
    long = build(page_input(synthetic.study(nodes=(1, 3, 6), workloads=("A", "C"), starts=4, trials=24)))
    assert {"trend", "course"} <= _tables_of(long, "validity")
    assert not {"warm-up-table", "parts", "time-point"} & _tables_of(long, "validity")
    assert "warm-up-table" in _tables_of(long, "appendix")
    assert re.search(r"detection \(MSER-5\) would cut \d+ of 24 series", long)
    assert "Warm-up: the study drops the first trial of each treatment in a start; every series is too short" in page
    assert "Over the study: 4 starts, too few to distinguish a change of level from chance; 6 are needed." in page
    assert 'id="appendix"' not in page


def test_attempts_without_a_course_are_named(made: ReportInput) -> None:
    first, *rest = made.timelines
    lost = rest[-1].record
    short = replace(made, timelines=[first, *rest[:-1]], too_short=[(lost.id, lost.attempt)])
    page = build(short)
    assert "too short to plot over time (1)" in page
    assert f'<dd class="ids">{lost.id}' in page
    assert 'id="not-drawn"' not in build(made)


def test_pauses_of_trials_too_short_for_a_course_have_a_note(made: ReportInput) -> None:
    assert drawn_trials.pauses_note(made) == "", "drawn, or not watched"
    gc = pl.DataFrame({"t_s": [1.0], "node": ["n1"], "metric": [WATCHED], "value": [0.0]})
    traces = [replace(trace, samples=pl.concat([trace.samples.select(gc.columns), gc])) for trace in made.traces]
    assert drawn_trials.pauses_note(replace(made, traces=traces)) == ""
    short = [(trace.record.id, trace.record.attempt) for trace in traces]
    lost = replace(made, traces=traces, timelines=[], too_short=short)
    assert drawn_trials.pauses_note(lost).startswith(
        "Pauses for garbage collection were recorded, but no trial is long enough for a time course"
    )
    assert "longer trials (load.duration_s, load.operations)" in build(lost)


def test_numbers_read_under_the_pointer_stand_in_a_table(page: str) -> None:
    course = page.partition('<table class="course">')[2].partition("</table>")[0]
    rows = course.partition("<tbody>")[2].split("<tr>")[1:]
    assert len(rows) == 15
    heads = [head.partition("<span")[0] for head in course.partition("<tbody>")[0].split("<th scope=col>")[1:]]
    assert heads[:5] == ["from", "answered", "offered", "failed", "p50"]
    assert all(len(row.split("<td>")) - 1 == len(heads) for row in rows)


def test_what_is_said_of_a_mark_is_kept_once(page: str) -> None:
    texts = json.loads(page.partition('id="tips">')[2].partition("</script>")[0])
    used = [int(place) for place in re.findall(r' data-tip="([^"]*)"', page)]
    assert set(used) == set(range(len(texts)))
    assert len(set(texts)) == len(texts)
    assert len(used) > len(texts)
    assert any("workload A, 1 node · " in text and "from 2 starts" in text for text in texts)


def test_hostile_words_under_the_pointer_stay_words() -> None:
    texts = HoverTexts()
    mark = Element("circle", (("data-tip", '</script>&"'),))
    drawn = Picture(10, 10, (mark,)).in_page(texts, title="", identity="a")
    assert '<circle data-tip="0"/>' in drawn
    assert "<" not in texts.as_json()
    assert "&" not in texts.as_json()
    assert json.loads(texts.as_json()) == ['</script>&"']


def test_packed_tables_come_back_and_broken_ones_are_refused() -> None:
    tables_ = {"a": {"columns": ["x"], "rows": [[1.5], [None], ["é"]]}}
    assert embedded_data.unpack(embedded_data.pack(tables_)) == tables_
    for broken in ("", "no base 64 !", embedded_data.pack(tables_)[:-8] + "AAAAAAA=", embedded_data.pack(tables_)[:24]):
        with pytest.raises(ValueError):
            embedded_data.unpack(broken)


def test_at_most_three_limits_stand_open_and_the_rest_is_folded(made: ReportInput) -> None:
    five = made.results.model_copy(update={"caveats": tuple(f"Limit {number}." for number in range(1, 6))})
    limits = build(replace(made, results=five)).partition('<div class="caveats">')[2].partition("</section>")[0]
    above, _, folded = limits.partition("<details>")
    assert re.findall(r"Limit \d", above) == ["Limit 1", "Limit 2", "Limit 3"]
    assert "<summary>2 more limits</summary>" in folded
    assert re.findall(r"Limit \d", folded) == ["Limit 4", "Limit 5"]
    three = made.results.model_copy(update={"caveats": ("Limit 1.",)})
    assert "more limit" not in build(replace(made, results=three)).partition("<main>")[2].partition("<script")[0]


def test_code_stands_between_backticks_and_no_backtick_is_left(page: str, made: ReportInput) -> None:
    caveats = ("Run `steelyard <b>` first.", "One ` alone.")
    text = build(replace(made, results=made.results.model_copy(update={"caveats": caveats})))
    assert "Run <code>steelyard &lt;b&gt;</code> first." in text
    assert "One ` alone." in text
    assert "`" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_hardware_commands_data_and_citation_stand_beside_the_answer(page: str) -> None:
    text = re.sub(r"<[^>]*>", "", page)
    assert "all nodes on one machine; Cassandra 5.0.5, heap 512 MB" in text
    assert "steelyard run STORE/study.toml --store again" in text
    assert "steelyard verify STORE" in text
    assert "intervals/*.parquet" in text
    assert page.index('id="main"') < page.index('id="provenance"') < page.index('id="comparisons"')


def test_two_sizes_have_neither_line_nor_law(made: ReportInput) -> None:
    two = build(made)
    three = build(page_input(synthetic.study(nodes=(1, 3, 6), workloads=("A",))))
    assert 'id="regression-table"' not in two
    assert 'id="size"' not in two
    assert 'id="regression-table"' in three


def test_a_percentile_that_no_trial_supports_has_no_key_and_no_number(made: ReportInput) -> None:
    key = build(made).partition('<figure id="percentiles"')[2].partition("</p>")[0]
    assert re.findall(r"p\d\d", key) == ["p50", "p95", "p99"]
    few = tuple(
        record.model_copy(update={"responses": record.responses.model_copy(update={"operations": 500})})
        for record in made.records
    )
    results = analyse(few, made.study, seed=1)
    page = build(replace(made, records=few, results=results))
    key = page.partition('<figure id="percentiles"')[2].partition("</p>")[0]
    assert re.findall(r"p\d\d", key) == ["p50", "p95"]
    table = page.partition('<table id="trials"')[2].partition("</table>")[0]
    heads = re.findall(r"<th [^>]*>([^<]*)", table)
    assert "p50" in heads
    assert "p99" not in heads


def test_columns_and_rows_without_content_are_left_out() -> None:
    columns = (ShownColumn("a"), ShownColumn("b"), ShownColumn("c"))
    cells = [("1", NONE, ""), ("2", NONE, "x")]
    table = Table("t", "T.", columns, tuple(tuple(Cell(text) for text in row) for row in cells))
    shown = table.without_empty_columns()
    assert [column.name for column in shown.columns] == ["a", "c"]
    assert [[cell.text for cell in row] for row in shown.rows] == [["1", ""], ["2", "x"]]
    study = synthetic.study(nodes=(1, 3, 6))
    results = analyse(synthetic.records(study), study, seed=1)
    for name, source in sources(results).items():
        rows = analysed.telling(source, results.response).rows
        assert not {"start means", "trials"} <= {getattr(row, "over", None) for row in rows}, name
        assert not {"honest", "published"} <= {getattr(row, "form", None) for row in rows}, name


def test_the_citation_is_that_of_the_repository() -> None:
    citation = (Path(__file__).parents[3] / "CITATION.cff").read_text(encoding="utf-8")
    for text in (provenance.TITLE, provenance.AUTHORS, provenance.LICENCE, steelyard.__version__):
        assert text in citation


def test_published_numbers_are_counted_where_the_study_repeats_a_publication(made: ReportInput) -> None:
    rows = tuple(
        PublishedPair(table="t", cell={}, statistic="mean", printed="1", verdict=verdict, reasons=reasons)
        for verdict, reasons in (("agrees", ()), ("not comparable", ("another machine",)))
    )
    beside = replace(made, published=rows, published_name="richardson2017")
    (text,) = [one.text for one in provenance.provenance(beside) if one.term == "Published numbers"]
    assert text.startswith(
        "Of 2 published numbers: 1 agrees and 1 not comparable. Not comparable, because another machine."
    )
    assert "`steelyard compare STORE richardson2017`" in text
    assert "Published numbers" not in {one.term for one in provenance.provenance(made)}


def test_the_limits_of_the_answer_stand_between_its_table_and_its_figure(page: str) -> None:
    """So that the first screen has them."""
    order = [page.index(mark) for mark in ("<b>Table 1.</b>", "What limits this answer", '<figure id="main"')]
    assert order == sorted(order)
