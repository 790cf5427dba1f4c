"""Property: the numbers that people read agree in sentence, table, `compare`, `status` and `--json`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from steelyard.analysis.analyse import analyse
from steelyard.analysis.cells import cell_values
from steelyard.analysis.comparisons.two_sided import Side, contrasts, pair
from steelyard.analysis.frame import frame_of
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import change_text
from steelyard.export import markdown
from steelyard.format import with_interval
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.reading.report_input import ReportInput
from steelyard.report.data.presentation import view
from steelyard.report.tables.cells import cells, response_values
from steelyard.report.tables.generic import estimate_cell
from tests.unit.analysis.made import FAULT, VOIDED, record, study

TIME, RATE = "execution_time_ms", "throughput_per_s"
NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?")
PER_UNIT = {"ms": 1.0, "s": 1000.0, "min": 60_000.0, "operations/s": 1.0}
MORE = {TIME: ("slower", "faster"), RATE: ("faster", "slower")}


@st.composite
def studies(draw: st.DrawFn) -> tuple[list[TrialRecord], Study]:
    """Two to four sizes, one or two workloads, one to five starts; some attempts voided, some failed.

    Some studies declare a margin, and in some nothing varies: those verdicts must agree too.
    """
    sizes = draw(st.sampled_from([(1, 3), (1, 2, 3), (1, 2, 4, 6)]))
    names = draw(st.sampled_from([("A",), ("A", "C")]))
    response = draw(st.sampled_from([TIME, RATE]))
    cut = draw(st.integers(0, 1))
    margin = draw(st.sampled_from([None, 5.0, 40.0]))
    varies = draw(st.sampled_from([True, True, False]))
    records = []
    for workload in names:
        for nodes in sizes:
            base = draw(st.floats(0.5, 500_000)) if varies else 1000.0 + nodes
            for start in range(1, draw(st.integers(1, 5)) + 1):
                mean = base * (draw(st.floats(0.7, 1.4)) if varies else 1.0)
                for order in range(1, draw(st.integers(1 + cut, 4)) + 1):
                    verdict = draw(st.sampled_from([None] * 8 + [VOIDED, FAULT]))
                    value = mean * (draw(st.floats(0.9, 1.1)) if varies else 1.0)
                    made = {"nodes": nodes, "workload": workload, "start": start, "replicate": order, "order": order}
                    records.append(record(value, **made, **({} if verdict is None else {"verdict": verdict})))
    analysis = {"response": response, "warm_up_trials": cut, "equivalence_margin_percent": margin}
    asked = study(factors={"nodes": sizes, "workload": names}, analysis=analysis)
    return records, asked


BEYOND = {"more than a thousand times as": (1000.0, math.inf), "less than a thousandth as": (0.0, 0.001)}
"""Words in place of a ratio's digits, and what they leave open."""


def quoted(text: str) -> tuple[float, float]:
    """A quantity as printed, in the unit of the store, and half of its last digit."""
    number, _, unit = text.partition(" ")
    return tuple(one * PER_UNIT[unit] for one in printed(number))  # type: ignore[return-value]


def printed(number: str) -> tuple[float, float]:
    """A number as printed, and half of its last digit."""
    plain = number.replace(",", "").replace("−", "-")
    places = len(plain.partition(".")[2])
    return float(plain), 0.5 * 10**-places


def ratio_of(change: str) -> tuple[float, float]:
    """The least and greatest ratio that a printed change can mean."""
    for words, ends in BEYOND.items():
        if change.startswith(words):
            return ends
    value, half = printed(NUMBER.search(change)[0])  # type: ignore[index]
    if change.partition("[")[0].rstrip().endswith("%"):
        return 1 + (value - half) / 100, 1 + (value + half) / 100
    assert "times as" in change
    return value - half, value + half


def holds(row: AnswerRow, value: str, base: str, change: str) -> None:
    """Quoted value over quoted baseline is the quoted change, within what rounding leaves open."""
    (b, half_b), (a, half_a) = quoted(value), quoted(base)
    low, high = ratio_of(change)
    least, most = (b - half_b) / (a + half_a), (b + half_b) / max(a - half_a, 1e-12)
    assert least <= high * (1 + 1e-9), (row, low, high)
    assert low <= most * (1 + 1e-9), (row, low, high)


@settings(
    max_examples=25,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(studies())
def test_that_quoted_numbers_agree_everywhere(made: tuple[list[TrialRecord], Study]) -> None:
    records, asked = made
    results = analyse(records, asked, seed=1)
    table = results.answer_table
    if table is None or not results.used:
        return
    for row in table.rows:
        if row.change_text:
            _row_agrees(row, results)
            _compare_agrees(row, records, asked, results.of(Trend))
    _status_agrees(table, records, asked)
    _sentences_agree(table, results)
    _tables_agree(results, records, asked)
    told = json.loads(results.model_dump_json())
    assert Results.model_validate(told).answer_table == table
    for row, plain in zip(table.rows, told["answer_table"]["rows"], strict=True):
        assert (plain["change_text"], plain["value"], plain["n"]) == (row.change_text, row.value, row.n)


def _row_agrees(row: AnswerRow, results: Results) -> None:
    """The row's texts, its verdict and the statistic's row are of one ratio."""
    holds(row, row.value_text, row.baseline_value_text, row.change_text)
    assert row.ratio is not None
    if row.verdict in ("slower", "faster"):
        slower_is_more = MORE[results.response][0] == "slower"
        assert (row.ratio.value > 1) == ((row.verdict == "slower") == slower_is_more)
    (compared,) = [
        one for one in results.of(Comparison)
        if (one.factor, one.others, one.level) == (row.factor, row.others, row.level)
    ]  # fmt: skip
    assert compared.mean_level.value / compared.mean_baseline.value / compared.ratio.value - 1 < 1e-9
    assert (compared.n_level, compared.starts_level) == (row.n, row.starts)
    assert ("neither interval nor verdict" in compared.sentence) == (compared.verdict == "descriptive")
    assert change_text(compared.ratio, results.response) == row.change_text
    assert (row.ratio.low is None) or min(row.starts, row.baseline_starts) >= 3


def _compare_agrees(row: AnswerRow, records: list[TrialRecord], asked: Study, trends: Sequence[Trend]) -> None:
    """`steelyard compare --a nodes=1 --b nodes=N` has the same values, n, change and verdict."""
    frame = frame_of(records, asked)
    a, b = (Side(str(level), frame, {"nodes": level, **row.others}, trends) for level in (row.baseline, row.level))
    margin = asked.analysis.equivalence_margin_percent
    (contrast,) = adjusted(contrasts(a, b, pair(a, b), str(asked.analysis.response), asked.analysis.confidence, margin))
    assert (contrast.n_b, contrast.starts_b, contrast.n_a) == (row.n, row.starts, row.baseline_n)
    assert (contrast.mean_b.value, contrast.mean_a.value) == (row.value, row.baseline_value)
    assert change_text(contrast.ratio, contrast.response) == row.change_text
    assert contrast.verdict == ("descriptive" if row.verdict == "no verdict" else row.verdict)
    assert contrast.within_trend == ("within trend" in row.verdict_text)


def _status_agrees(table: AnswerTable, records: list[TrialRecord], asked: Study) -> None:
    """`status` counts as the report does, but for starts that are not compared: their blocks are not whole."""
    cells = {tuple(sorted(one.treatment.items())): one for one in cell_values(records, asked)}
    for row in table.rows:
        known = cells.get(tuple(sorted({**row.others, row.factor: row.level}.items())))
        if known is None:
            assert row.value is None
            continue
        if known.starts > row.starts:
            assert known.n > row.n
            continue
        assert (known.n, known.starts) == (row.n, row.starts)
        # Both add up the same values, one without a frame: the last bits may differ.
        assert (known.value is None) == (row.value is None)
        assert known.value is None or known.value.value == pytest.approx(row.value, rel=1e-12)


def _tables_agree(results: Results, records: list[TrialRecord], asked: Study) -> None:
    """The page's tables and the exported page have the value of `status` for each cell, and one for each response."""
    simulated = TrialSettings(root={"system": {"name": "simulated"}})
    whole = [one.model_copy(update={"settings": simulated}) for one in records]
    this, page = view(results), markdown.page(ReportInput(study=asked, results=results, records=whole))
    known = {label(one.treatment): one.value for one in cell_values(records, asked)}
    for summary, row in zip(results.main(Summary), cells(this).rows, strict=True):
        value = known.get(label(summary.treatment))
        assert (value is None) == (summary.geometric_mean is None)
        if value is None or summary.geometric_mean is None:
            continue
        assert value.value == pytest.approx(summary.geometric_mean.value, rel=1e-12)
        sd = this.scale.of(summary.sd.value if summary.sd else None)
        assert estimate_cell(this.scale.estimate(summary.geometric_mean), spread=sd) in row
        assert with_interval(summary.geometric_mean) in page
    others = [one.geometric_mean for one in results.others(Summary) if one.response == "response_ms_p99"]
    assert all(with_interval(value) in page for value in others if value is not None)
    table = response_values(this)
    shown = {cell.text for row in table.rows for cell in row} if table else set()
    assert all(with_interval(value) in shown for value in others if value is not None and table is not None)


def _sentences_agree(table: AnswerTable, results: Results) -> None:
    """A sentence of the answer quotes the texts of the table's rows, and no others."""
    text = " ".join(results.answer).casefold()
    for _, rows in table.by_line():
        base, last = rows[0], rows[-1]
        if len(rows) <= 4 and base.value is not None:
            for row in rows:
                compared = [
                    row.value_text,
                    *(one.baseline_value_text for one in rows if row is base and one.change_text),
                ]
                assert any(value.casefold() in text for value in compared)
                assert row.change_text.casefold() in text
        elif base.value is not None and last.change_text:
            assert last.change_text.casefold() in text
    assert "in the mean" not in text
    assert "median" not in text
