"""Table of interaction contrasts on the page: how a level's change depends on a level of another factor."""

from __future__ import annotations

from steelyard.analysis.row import meaning
from steelyard.analysis.statistics.interaction import NOISE, TRENDS, Interaction, quantities_of
from steelyard.analysis.treatments import factor_label, label
from steelyard.analysis.wording import capital
from steelyard.format import NONE, confidence_text, number, p_value, with_interval
from steelyard.report.data.presentation import View
from steelyard.report.tables.generic import Cell, ShownColumn, Table

NAME = "interaction"
WHYS = {NOISE: "noise", TRENDS: "trends"}
"""Why a difference is undecided anyway, in the cell of its verdict."""


def interactions(this: View) -> Table | None:
    """A row per level, level of another factor, and levels of the rest; None without any."""
    rows = this.results.of(Interaction)
    if not rows:
        return None
    columns = (
        ShownColumn("", numeric=False),
        ShownColumn("compared", numeric=False, term="comparison"),
        ShownColumn("by", numeric=False, about=meaning(Interaction, "by")),
        ShownColumn("ratios", about="Level over baseline, at the other factor's baseline, then at its level."),
        ShownColumn("ratio of ratios", about=meaning(Interaction, "ratio_of_ratios")),
        ShownColumn("p", "Holm", about=meaning(Interaction, "p_holm")),
        ShownColumn("verdict of ratios", numeric=False, about=meaning(Interaction, "verdict")),
        ShownColumn("difference of differences", about=meaning(Interaction, "difference_of_differences")),
        ShownColumn("p of differences", "Holm", about=meaning(Interaction, "p_holm_of_differences")),
        ShownColumn("verdict of differences", numeric=False, about=meaning(Interaction, "verdict_of_differences")),
    )
    confidence = f"{confidence_text(this.results.confidence)}"
    caption = (
        f"{capital(this.results.response_label)}: how the change between two levels (compared) depends on another "
        f"factor (by); brackets are {confidence} intervals over starts. A change may shrink as a ratio and grow as a "
        "difference"
    )
    used = {WHYS[why] for row in rows for why in (row.why, row.why_of_differences) if why}
    notes = [
        f"undecided ({short}): the interval leaves out no difference, but {why}"
        for why, short in WHYS.items()
        if short in used
    ]
    text = ". ".join([caption, *map(capital, notes)]) + "."
    return Table(NAME, text, columns, tuple(map(_row, rows)), title="How changes depend on another factor")


def _row(row: Interaction) -> tuple[Cell, ...]:
    quotient, gap = row.ratio_of_ratios, row.difference_of_differences
    ratios = " → ".join(number(ratio, digits=2, trim=False) for ratio in (row.ratio_by_baseline, row.ratio_by_level))
    return (
        Cell(label(row.others) if row.others else ""),
        Cell(f"{factor_label(row.factor)} {row.baseline} → {row.level}"),
        Cell(f"{factor_label(row.by)} {row.by_baseline} → {row.by_level}"),
        Cell(ratios),
        Cell(NONE) if quotient is None else Cell(with_interval(quotient), repr(quotient.value)),
        _p(row.p_holm),
        _verdict(row.verdict, row.why),
        Cell(quantities_of(row)[2], repr(gap.value)),
        _p(row.p_holm_of_differences),
        _verdict(row.verdict_of_differences, row.why_of_differences),
    )


def _p(p: float | None) -> Cell:
    return Cell(p_value(p), "" if p is None else repr(p))


def _verdict(verdict: str, why: str) -> Cell:
    text = f"{verdict} ({WHYS[why]})" if why else verdict
    return Cell(text, tone="strong" if verdict in ("higher", "lower") else "quiet")
