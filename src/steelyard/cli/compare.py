"""`steelyard compare A B`: two stores, or two treatments of one; what changed, how sure that is, what else differs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from steelyard.analysis.results import LABELS, UNITS, label
from steelyard.analysis.sides import DECIDED, limits_percent
from steelyard.cli.terminal.comparison_table import draw, footer
from steelyard.reading import comparison as comparing
from steelyard.reading.comparison import Comparison, opened
from steelyard.report.figures import forest

EXIT_DECIDED, EXIT_UNDECIDED = 0, 1
MOST_DIFFERENCES = 12
"""Lines of a kind on the screen; `--json` has all."""


@dataclass(frozen=True)
class Asked:
    """The command line."""

    a: str
    b: str | None
    fixed_a: tuple[str, ...] = ()
    fixed_b: tuple[str, ...] = ()
    metric: str | None = None
    margin_percent: float | None = None
    figure: Path | None = None
    as_json: bool = False


def compare(asked: Asked, console: Console) -> int:
    """Carry out. Returns 0 if every comparison is decided (or, beside a reference, agrees), else 1.

    Raises StudyError for what cannot be compared, StoreError for what cannot be read.
    """
    if asked.b is not None and not _is_store(asked.b):
        from steelyard.cli.compare_published import beside

        return beside(asked, opened(asked.a), console)
    if asked.figure is not None:
        forest.refuse_other(asked.figure)
    first = opened(asked.a)
    comparison = comparing.compare(
        first,
        first if asked.b is None else opened(asked.b),
        a=asked.fixed_a,
        b=asked.fixed_b,
        response=asked.metric,
        margin_percent=asked.margin_percent,
    )
    if asked.as_json:
        print(json.dumps(_as_json(comparison), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        draw(comparison.a, comparison.b, comparison.contrasts, console)
        under = footer(comparison.contrasts, comparison.floors, comparison.designs)
        console.print(Text(under, style="dim"), soft_wrap=True)
        _remarks(comparison, console)
    if asked.figure is not None:
        _figure(comparison, asked.figure)
    return EXIT_DECIDED if all(one.verdict in DECIDED for one in comparison.contrasts) else EXIT_UNDECIDED


def _is_store(name: str) -> bool:
    return Path(name).exists()


def _remarks(comparison: Comparison, console: Console) -> None:
    console.print()
    for sentence in comparison.warnings:
        console.print(Text(f"! {sentence}", style="yellow"), soft_wrap=True)
    differences = comparison.differences
    for kind in dict.fromkeys(difference.kind for difference in differences if difference.kind != "time"):
        of_kind = [difference for difference in differences if difference.kind == kind]
        head = "compared" if kind == "asked" else f"{kind} differs"
        for difference in of_kind[:MOST_DIFFERENCES]:
            console.print(Text.assemble((f"{head:<16}", "dim"), difference.words()), soft_wrap=True)
        if len(of_kind) > MOST_DIFFERENCES:
            more = len(of_kind) - MOST_DIFFERENCES
            console.print(Text.assemble((f"{head:<16}", "dim"), f"and {more} more: --json"), soft_wrap=True)
    for text in comparison.missing:
        console.print(Text(text, style="dim"), soft_wrap=True)


def _as_json(comparison: Comparison) -> dict[str, Any]:
    a, b = comparison.a, comparison.b
    return {
        "a": {"name": a.name, "fixed": dict(a.fixed)},
        "b": {"name": b.name, "fixed": dict(b.fixed)},
        "unit_of_replication": "start",
        "comparisons": [contrast.model_dump(mode="json") for contrast in comparison.contrasts],
        "differences": [difference.model_dump(mode="json") for difference in comparison.differences],
        "warnings": list(comparison.warnings),
        "noise_floor": list(comparison.floor_sentences),
        "missing": list(comparison.missing),
    }


def _figure(comparison: Comparison, path: Path) -> None:
    a, b = comparison.a, comparison.b
    rows = [
        forest.ForestRow(
            label=label(contrast.cell) if contrast.cell else f"{b.name} against {a.name}",
            value=contrast.change_percent.value,
            low=contrast.change_percent.low,
            high=contrast.change_percent.high,
            verdict=contrast.verdict,
            decided=contrast.verdict in DECIDED,
        )
        for contrast in comparison.contrasts
    ]
    first = comparison.contrasts[0]
    starts = sorted({count for contrast in comparison.contrasts for count in (contrast.starts_a, contrast.starts_b)})
    caption = (
        f"{b.name} against {a.name}\n{first.ratio.confidence:.0%} intervals over starts "
        f"({' or '.join(str(count) for count in starts)} a side); unit of the values: {UNITS[first.response]}"
    )
    margin = None if comparison.margin_percent is None else limits_percent(comparison.margin_percent)
    forest.write(forest.spec(rows, f"Change of {LABELS[first.response]}", caption, margin), path)
