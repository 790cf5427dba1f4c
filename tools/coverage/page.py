"""Coverage page: tables of counts, two figures, and text that the counts fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from steelyard.report.basics.theme import ALERT, BAND, DASHES, INK, MUTED, SERIES
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, measured
from steelyard.report.draw.plot import Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain
from steelyard.report.draw.svg import Element, text
from tools.coverage import sides
from tools.coverage.tally import CONFIDENCE, FEWEST_STUDIES, TOLERANCE, Line

FIGURES = ("coverage-identical.svg", "coverage-ratio.svg")
WIDTH, HEIGHT, KEY = 680.0, 252.0, 290.0
STARTS_SHOWN = ("2", "3", "5", "10", "20")
USES: Mapping[str, str] = {"ours": "", "replication": "replication", "not used": "not used"}

BROKEN = ("narrow", "errs too often", "misses")
"""Verdicts on a promise that is not kept."""
WORDS = "words.md"
"""File beside this module: the head of the page, then one section per family."""


def words() -> dict[str, str]:
    """Family to its text; the head of the page under an empty name."""
    text = resources.files(__package__).joinpath(WORDS).read_text(encoding="utf-8")
    head, *sections = text.split("\n## ")
    by_family = {"": head.strip()}
    for section in sections:
        name, _, body = section.partition("\n")
        by_family[name.strip()] = body.strip()
    return by_family


def table(lines: Sequence[Line]) -> str:
    """Table of one family: one row per method and truth, one column per number of units."""
    numbers = sorted({line.case.n for line in lines}, key=_by_size)
    rows: dict[tuple[str, str], dict[str, Line]] = {}
    for line in lines:
        rows.setdefault((line.method, line.case.truth), {})[line.case.n] = line
    heads = ["method", "truth", "use", *numbers]
    out = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for (method, truth), cells in rows.items():
        use = USES[next(iter(cells.values())).use]
        shown = (_cell(cells[n]) if n in cells else "" for n in numbers)
        out.append(f"| {method} | {truth} | {use} | {' | '.join(shown)} |")
    return "\n".join(out)


def _by_size(n: str) -> tuple[int, list[int]]:
    """Sort key: `10` after `2`, `2, 5` after both, `8 sizes x 1` by its numbers."""
    numbers = [int(one) for one in re.findall(r"\d+", n)]
    return len(numbers), numbers


def _cell(line: Line) -> str:
    """`95.1 ± 0.3`; in bold with its verdict if it does not hold."""
    if line.rate is None:
        return "no ends"
    shown = f"{100 * line.rate:.1f} ± {100 * line.error:.1f}"
    part = "" if line.given == line.studies else f" ({100 * line.given / line.studies:.0f}% given)"
    return f"{shown}{part}" if line.verdict == "holds" else f"**{shown}** {line.verdict}{part}"


def _ours(lines: Sequence[Line]) -> str:
    given = [line.verdict for line in lines if line.use == "ours" and line.given >= FEWEST_STUDIES]
    return (
        f"Of {len(given)} cells of the report's own methods, {given.count('holds')} hold; "
        f"{given.count('wide')} intervals are wide and {given.count('narrow')} narrow; "
        f"{given.count('cautious')} tests are cautious, {given.count('errs too often')} err too often and "
        f"{given.count('misses')} miss too much."
    )


def page(lines: Sequence[Line], studies: int, seed: int) -> str:
    """The whole page in Markdown."""
    narrow = [line for line in lines if line.use == "ours" and line.verdict in BROKEN]
    about = words()
    low, high = (f"{100 * (CONFIDENCE + side * TOLERANCE):g}" for side in (-1, 1))
    parts = [
        "# Coverage of the 95% intervals\n\n<!-- Written by python -m tools.coverage; do not edit. -->",
        about[""].format(studies=studies, seed=seed, low=low, high=high),
        _ours(lines),
        f"![Identical systems called different, over starts per level](../figures/{FIGURES[0]})",
        f"![Coverage of intervals of a ratio, over starts per level](../figures/{FIGURES[1]})",
        "## Methods of the report that miss their promise\n\n" + _narrow(narrow),
    ]
    for family in dict.fromkeys(line.case.family for line in lines):
        of_family = [line for line in lines if line.case.family == family]
        parts.append(f"## {family}\n\n{about[family]}\n\n{_unit(of_family)}\n\n{table(of_family)}")
    return "\n\n".join(parts) + "\n"


def _narrow(lines: Sequence[Line]) -> str:
    if not lines:
        return "Nowhere in these tables."
    rows = [f"* {line.method}; {line.case.truth}; n {line.case.n}: {100 * (line.rate or 0):.1f}%" for line in lines]
    return "\n".join(rows)


def _unit(lines: Sequence[Line]) -> str:
    seen = "per cent of studies in which something was seen that is not there (promised: at most 5)"
    holding = "per cent of intervals that hold the truth (promised: 95)"
    finding = "per cent of effects that are found (promised: at least 95)"
    errs = {line.case.promise for line in lines}
    if len(errs) == 1:
        return f"{(seen if errs == {'errs'} else holding).capitalize()}."
    finds = f" What is to be found: {finding}." if "finds" in errs else ""
    return f"Tests: {seen}. Intervals: {holding}.{finds}"


def figures(lines: Sequence[Line]) -> tuple[str, str]:
    """The two pictures, in the order of FIGURES."""
    house = [line for line in lines if line.case.truth.endswith(sides.HOUSE.words)]
    same = [line for line in house if line.case.family == sides.SAME and line.case.n in STARTS_SHOWN]
    ratios = [line for line in house if line.case.family == sides.RATIOS and "same starts" not in line.case.truth]
    wanted = ("Welch on", "Fieller", "bootstrap-t", "percentile")
    shown = [line for line in ratios if line.case.n in STARTS_SHOWN and line.method.startswith(wanted)]
    return (
        _picture(same, "identical systems called different, % of studies", (0.0, 45.0), (0.0, 5.0)),
        _picture(shown, "intervals that hold the true ratio, % of studies", (75.0, 100.0), (94.0, 96.0)),
    )


def _picture(lines: Sequence[Line], title: str, range_percent: tuple[float, float], good: tuple[float, float]) -> str:
    """At most four lines over starts per level; a band shows the promise, bars show two standard errors each way."""
    places = tuple((float(place), starts) for place, starts in enumerate(STARTS_SHOWN))
    x = Axis(Domain(-0.3, len(STARTS_SHOWN) - 0.8), "starts per level", places, fixed=True)
    methods = {method: [line for line in lines if line.method == method] for method in (one.method for one in lines)}

    def draw(area: PlotArea) -> Layers:
        promise = marks.rectangle(area.left, area.y.of(good[1]), area.right, area.y.of(good[0]), BAND)
        drawn: list[Element | None] = []
        for place, (method, ours) in enumerate(methods.items()):
            colour, dash = (*SERIES[:3], ALERT)[place], "" if ours[0].use == "ours" else DASHES[1]
            height, left = area.top + 14 + 34 * place, area.right + 20
            drawn += [
                *_series(area, ours, colour, dash),
                marks.line([(left, height - 4), (left + 24, height - 4)], colour, dash=dash),
                text(left + 28, height, method.replace("`", ""), fill=INK),
                text(left + 28, height + 13, USES[ours[0].use] or "ours", fill=MUTED),
            ]
        return Layers(drawn, [promise])

    y = measured(Domain(*range_percent), title, 4)
    return plot(x, y, draw, width=WIDTH, height=HEIGHT, right=KEY).in_file() + "\n"


def _series(area: PlotArea, lines: Sequence[Line], colour: str, dash: str) -> list[Element | None]:
    at = [
        (STARTS_SHOWN.index(line.case.n), 100 * line.rate, 200 * line.error) for line in lines if line.rate is not None
    ]
    ends = [(area.x.of(place), area.y.of(rate - error), area.y.of(rate + error)) for place, rate, error in at]
    return [
        marks.line([area.at(place, rate) for place, rate, _ in at], colour, dash=dash),
        marks.uprights(ends, colour, width=1),
    ]
