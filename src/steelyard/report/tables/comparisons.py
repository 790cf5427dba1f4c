"""Table of every comparison: each level against its baseline."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.narrative.answer_table import verdict_text
from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import factor_label, label
from steelyard.format import NONE, number, p_value
from steelyard.report.data.presentation import View
from steelyard.report.tables.generic import Cell, ShownColumn, Table, plain


def comparisons(this: View) -> Table | None:
    """Each level against its baseline: change, interval, verdict."""
    compared = this.results.of(Comparison)
    if not compared:
        return None
    floors = any(comparison.floor_percent is not None for comparison in compared)
    columns = (
        ShownColumn("", numeric=False),
        ShownColumn("compared", numeric=False, term="comparison"),
        ShownColumn(
            "change", about=meaning(Comparison, "difference" if compared[0].ratio is None else "change_percent")
        ),
        ShownColumn("interval", term="interval"),
        ShownColumn("n", "trials", about=meaning(Summary, "n")),
        ShownColumn("starts", about=meaning(Summary, "starts")),
        *((ShownColumn("noise floor", "%", about=meaning(Comparison, "floor_percent")),) if floors else ()),
        ShownColumn("p", "Holm", about=meaning(Comparison, "p_holm")),
        ShownColumn("more", "starts", about=meaning(Comparison, "more_starts")),
        ShownColumn("verdict", numeric=False, term="verdict of a level"),
    )
    rows = []
    for comparison in compared:
        change, _, ends = comparison.change_text.partition(" [")
        rows.append(
            (
                plain(label(comparison.others, [comparison.factor])),
                plain(
                    f"{factor_label(comparison.factor, comparison.others)} {comparison.baseline} → {comparison.level}"
                ),
                Cell(change, repr((comparison.change_percent or comparison.change).value)),
                plain(f"[{ends}" if ends else NONE),
                plain(f"{comparison.n_baseline} → {comparison.n_level}"),
                plain(f"{comparison.starts_baseline} → {comparison.starts_level}"),
                *((_floor(comparison),) if floors else ()),
                Cell(p_value(comparison.p_holm), "" if comparison.p_holm is None else repr(comparison.p_holm)),
                plain(NONE if comparison.more_starts is None else comparison.more_starts),
                plain(
                    verdict_text(comparison),
                    "strong" if comparison.verdict not in ("undecided", "descriptive") else "quiet",
                ),
            )
        )
    about = f"Change of {this.results.response_label} between levels, all else equal."
    return Table("comparisons", f"{about}{_test(compared)}", columns, tuple(rows))


def _test(compared: Sequence[Comparison]) -> str:
    """The one test that the verdicts rest on, in a sentence; empty without an interval."""
    methods = dict.fromkeys(one.change.method.rsplit(", ", 1)[0] for one in compared if one.change.low is not None)
    tests = "; ".join(method.partition(", ")[2] for method in methods)
    corrected = ", p after Holm's correction" if any(one.family > 1 for one in compared) else ""
    return f" The test of every verdict, and its interval: {tests}{corrected}." if tests else ""


def _floor(comparison: Comparison) -> Cell:
    floor = comparison.floor_percent
    return Cell(NONE) if floor is None else Cell(number(floor.value, digits=2), repr(floor.value))
