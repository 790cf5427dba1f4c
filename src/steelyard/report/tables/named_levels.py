"""Table of named levels: what each level of a named factor sets, and its number."""

from __future__ import annotations

from steelyard.format import NONE
from steelyard.model.study import Study
from steelyard.report.tables.generic import Cell, ShownColumn, Table

NAME = "levels"


def named_levels(study: Study) -> Table | None:
    """One row for each named level that the study's factors have; None without one."""
    rows = tuple(
        (
            Cell(factor),
            Cell(str(level)),
            Cell(named.fields_in_words(), tone="long"),
            Cell(named.number_in_words() or NONE),
        )
        for factor, levels in study.tried.items()
        for level in levels
        if (named := study.named_level(factor, level)) is not None
    )
    if not rows:
        return None
    columns = (
        ShownColumn("factor", numeric=False, term="factor"),
        ShownColumn("level", numeric=False, term="factor"),
        ShownColumn("sets", numeric=False, term="fields of a named level"),
        ShownColumn("stands for", term="number of a named level"),
    )
    return Table(NAME, "What each named level sets.", columns, rows)
