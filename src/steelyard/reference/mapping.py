"""Mapping of own trials to the cells of a published table, as `tables.toml` defines it.

A *facet* is a setting of our trial as text (`site.nodes`, `load.threads`) or a value derived from settings
(`workload.read_fraction`). A treatment matches a published cell if every facet has the level in the cell's row.
Conditions are facets that should be equal; differences are reported, but do not select treatments.

A table prints either one number per cell, which is compared with an estimate of ours, or numbers computed from all
trials of one or several cells, which are computed from ours in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.model.estimate import Estimate
from steelyard.reference.comparison import PublishedPair, Verdict, lay, regression, shown, speedup, summary
from steelyard.reference.printed import Printed
from steelyard.reference.tables import Column, Form, Number, Row, Table, tables

PLACED = "beside."
"""Prefix of the facet for a column that none of our factors determines: the published level to compare with."""
MS_PER_S = 1000
FEWEST_TRIALS = 2
"""One trial has no spread, so a difference cannot be judged."""


@dataclass(frozen=True)
class Own:
    """One own treatment, as the mapping sees it."""

    name: str
    facets: Mapping[str, str]
    """Facet to its level as text; unknown ones are missing."""
    n: int
    numbers: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    """(response, statistic) to our number, in the published unit; a response in a window by `tables.in_window`."""
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Response to reasons why ours is a different quantity, such as processors shared by the nodes."""
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Response to its value in each trial."""


Contrasted = Callable[[Own, Own, str], Estimate | None]
"""Cohen's d of a response, the first treatment minus the second."""


def lay_table(table: Table, own: Sequence[Own], contrasted: Contrasted) -> tuple[PublishedPair, ...]:
    """Every printed number of the table with our own, or the reason why there is none; empty for a table without a
    form."""
    if table.form is None:
        return ()
    form, rows = table.form, []
    if form.computed:
        return tuple(beside for row in table.wide() for beside in _computed(table, form, row, own))
    for row in table.rows:
        for column, printed in row.numbers.items():
            spec = _spec(form, row, column, own)
            rows.append(_compared(table, form, row, column, printed, spec, own, contrasted))
    return tuple(rows)


def _spec(form: Form, row: Row, column: str, own: Sequence[Own]) -> Number | None:
    """The number of ours for a column: the first that a treatment matches, otherwise one whose conditions on treatments
    are met by some."""
    fitting = [one for one in form.numbers if one.column == column and _holds(one.where, row)]
    usable = [
        one
        for one in fitting
        if all(any(other.facets.get(facet) == level for other in own) for facet, level in one.only.items())
    ]
    matched = (one for one in usable if one.response and _matching(form, one, one.cell, row, own))
    return next(matched, next(iter([*usable, *fitting]), None))


def clashes(table: Table, own: Sequence[Own]) -> tuple[Own, Own] | None:
    """Two own treatments that match the same printed number with equally many reasons against them."""
    if table.form is None or not _weighs(table.form, own):
        return None
    if table.form.computed:
        first: dict[tuple[str | None, ...], Own] = {}
        for treatment in own:
            other = first.setdefault(
                tuple(treatment.facets.get(facet) for facet in table.form.cell.values()), treatment
            )
            if other is not treatment:
                return other, treatment
        return None
    for row in table.rows:
        for spec in table.form.numbers:
            for cell in (spec.cell, spec.against):
                if not spec.response or cell is None or not _holds(spec.where, row):
                    continue
                both = _matching(table.form, spec, cell, row, own)
                if len(both) > 1 and len(apart(table.form, row, both[0])) == len(apart(table.form, row, both[1])):
                    return both[0], both[1]
    return None


def _weighs(form: Form, own: Sequence[Own]) -> bool:
    return not form.system or any(one.facets.get("system.name") == form.system for one in own)


def _holds(where: Mapping[str, str], row: Row) -> bool:
    return all(row.key.get(name) == wanted for name, wanted in where.items())


def _matching(form: Form, spec: Number, cell: Mapping[str, str] | None, row: Row, own: Sequence[Own]) -> list[Own]:
    """Own treatments that match the cell, fewest reasons against first."""
    wanted = {facet: _level(form, name, row) for name, facet in {**form.cell, **(cell or {})}.items()}
    wanted |= dict(spec.only)
    matching = [one for one in own if all(one.facets.get(facet) == level for facet, level in wanted.items())]
    return sorted(matching, key=lambda one: len(apart(form, row, one)))


def _level(form: Form, name: str, row: Row) -> str:
    text = row.key[name]
    return form.levels.get(name, {}).get(text, text)


def _compared(
    table: Table, form: Form, row: Row, column: str, printed: Printed, spec: Number | None, own: Sequence[Own],
    contrasted: Contrasted,
) -> PublishedPair:  # fmt: skip
    known = {"table": table.name, "cell": row.key, "statistic": column, "unit": _unit(table.columns[column], row)}
    if spec is None or not spec.response:
        why = spec.missing if spec is not None else form.missing
        return _without(known, printed, "not comparable", (why or "nothing of ours is the same number",))
    if not _weighs(form, own):
        systems = {one.facets.get("system.name", "") for one in own}
        why = f"system {', '.join(sorted(systems))}, published {form.system_words or form.system}"
        return _without(known, printed, "not comparable", (why, *((form.missing,) if form.missing else ())))
    first, second = (_matching(form, spec, cell, row, own) for cell in (spec.cell, spec.against))
    if not first or (spec.against is not None and not second):
        cells = [spec.cell] if spec.against is None else [spec.cell, spec.against]
        return _without(known, printed, "no number", (_no_treatment(form, spec, cells, row, own),))
    if spec.against is not None:
        ours = contrasted(first[0], second[0], spec.response)
    else:
        ours = first[0].numbers.get((spec.quantity, spec.statistic))
    if ours is not None and (ours.unit, known["unit"]) == ("ms", "s"):
        ours = ours.mapped(lambda ms: ms / MS_PER_S, "s")
    if ours is None:
        return _without(known, printed, "no number", (f"our trials have no {spec.response_words or spec.response}",))
    both = [first[0]] if spec.against is None else [first[0], second[0]]
    reasons = dict.fromkeys(
        why for one in both for why in (*apart(form, row, one), *one.remarks.get(spec.response, ()))
    )
    beside = lay(table.name, row.key, column, printed, ours, (*reasons, *spec.unlike))
    return beside.model_copy(update={"unit": known["unit"]})


def _unit(column: Column, row: Row) -> str:
    return row.key.get("unit", column.unit) if column.unit == "in column unit" else column.unit


def _without(known: Mapping[str, object], printed: Printed, verdict: Verdict, reasons: Sequence[str]) -> PublishedPair:
    if printed.interval is None:
        verdict, reasons = "no number", ("nothing was published",)
    ends = printed.interval
    return PublishedPair.model_validate({
        **known, "printed": printed.text, "verdict": verdict, "reasons": tuple(reasons),
        "published_low": None if ends is None else ends.low, "published_high": None if ends is None else ends.high,
    })  # fmt: skip


def _no_treatment(
    form: Form, spec: Number, cells: Sequence[Mapping[str, str] | None], row: Row, own: Sequence[Own]
) -> str:
    """Levels of the published cell that no own treatment has."""
    for facet, level in spec.only.items():
        if all(one.facets.get(facet) != level for one in own):
            return f"no treatment of ours has {form.words.get(f'{facet} {level}', f'{facet} {level}')}"
    for cell in cells:
        levels = {name: (facet, _level(form, name, row)) for name, facet in {**form.cell, **(cell or {})}.items()}
        lacking = [
            f"{form.words.get(name, name)} {row.key[name]}"
            for name, (facet, level) in levels.items()
            if all(one.facets.get(facet) != level for one in own)
        ]
        if lacking:
            return f"no treatment of ours has {', '.join(lacking)}"
    return "no treatment of ours has all levels of this cell together"


def apart(form: Form, row: Row, own: Own) -> tuple[str, ...]:
    """Conditions that are known on both sides and differ, and too few trials."""
    return (*_differing(form, row.key, own), *_too_few(own.n))


def _differing(form: Form, key: Mapping[str, str], own: Own) -> list[str]:
    reasons = []
    for facet, published in form.conditions.items():
        theirs = key.get(published.removeprefix("column "), "") if published.startswith("column ") else published
        ours = own.facets.get(facet)
        if ours is not None and theirs and ours != theirs:
            reasons.append(f"{form.words.get(facet, facet)} {shown(ours)}, published {shown(theirs)}")
    return reasons


def _too_few(trials: int) -> tuple[str, ...]:
    return () if trials >= FEWEST_TRIALS else (f"n {trials}: too few trials of ours to say how sure it is",)


def unpublished(table: Table, own: Sequence[Own]) -> list[str]:
    """Own cells, in the table's terms, that have no row in a table of computed numbers."""
    if table.form is None or not table.form.computed:
        return []
    facets = table.form.cell
    known = [{name: row.key[name] for name in facets} for row in tables()[table.form.cells_of].wide()]
    cells = [{name: one.facets.get(facet, "") for name, facet in facets.items()} for one in own]
    return [" ".join(cell.values()) for cell in cells if cell not in known]


def _computed(table: Table, form: Form, row: Row, own: Sequence[Own]) -> list[PublishedPair]:
    """The numbers in a row and ours; empty if we lack a cell that the row was computed from."""
    behind = form.cells_behind(row.key)
    groups = [[one for one in own if _within(form, cell, one) and one.values.get(form.response)] for _, cell in behind]
    if not all(groups):
        return []
    values = [[value for one in group for value in one.values[form.response]] for group in groups]
    alone = groups[0][0] if len(behind) == 1 and not _pools(form, behind[0][1]) else None
    counts = [len(one) for one in values]
    n = sum(counts) if form.computed == "regression" else min(counts)
    common = {name: level for name, level in behind[0][1].items() if all(cell[name] == level for _, cell in behind)}
    reasons = dict.fromkeys(why for group in groups for one in group for why in _differing(form, common, one))
    pools = (_other_pool(form, cell, group) for (_, cell), group in zip(behind, groups, strict=True))
    why = (*reasons, *_too_few(min(counts)), *dict.fromkeys(one for one in pools if one))
    rows = []
    for statistic, value in _statistics(form, [x for x, _ in behind], values).items():
        ours = alone.numbers.get((form.response, statistic)) if alone is not None else None
        if ours is None and math.isfinite(value):
            unit = "trials" if statistic == "count" else "ms" if form.computed == "summary" else ""
            ours = Estimate(value=value, n=n, unit=unit, method="computed as published, without an interval")
        rows.append(lay(table.name, row.key, statistic, row.numbers[statistic], ours, why))
    return rows


def _statistics(form: Form, places: Sequence[float], values: Sequence[Sequence[float]]) -> dict[str, float]:
    match form.computed:
        case "regression":
            x = [place for place, group in zip(places, values, strict=True) for _ in group]
            return regression(x, [value for group in values for value in group])
        case "ratios":
            return speedup(values[0], values[1])
        case _:
            return summary(values[0])


def _within(form: Form, cell: Mapping[str, str], own: Own) -> bool:
    """Whether a treatment belongs to a cell; a pooled cell has all sizes."""
    return all(
        level == form.pooled.get(name) or own.facets.get(form.cell[name]) == level for name, level in cell.items()
    )


def _pools(form: Form, cell: Mapping[str, str]) -> list[str]:
    return [name for name, level in form.pooled.items() if cell[name] == level]


def _other_pool(form: Form, cell: Mapping[str, str], group: Sequence[Own]) -> str:
    """Reason why a pooled cell is not comparable (it pools other levels); empty if it is comparable."""
    for name in _pools(form, cell):
        ours = sorted({one.facets[form.cell[name]] for one in group})
        rest = [column for column in form.cell if column != name]
        rows = (row.key for row in tables()[form.cells_of].wide())
        theirs = sorted({key[name] for key in rows if all(key[one] == cell[one] for one in rest)} - {cell[name]})
        if ours != theirs:
            words = form.words.get(name, name)
            return f"scale: ours pools {words} {', '.join(ours)}, published {', '.join(theirs)}"
    return ""
