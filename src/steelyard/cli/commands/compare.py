"""`steelyard compare A B`: compare two stores or two treatments: the change, its uncertainty, other differences."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from steelyard.analysis.inference.multiplicity import DECIDED
from steelyard.analysis.wording import capital
from steelyard.cli import completion
from steelyard.cli.signature import Cluster, FixedA, FixedB, Json, Margin, OtherSide, Workers, response_list
from steelyard.cli.terminal.answer_output import say_limits
from steelyard.cli.terminal.comparison_table import draw, footer
from steelyard.cli.terminal.output import data_console, message_console, print_wrapped, say, warn_of_damages
from steelyard.model.errors import StudyError
from steelyard.model.responses import better_of
from steelyard.reading import comparison as comparing
from steelyard.reading.comparison import Comparison
from steelyard.reading.parallel import readers
from steelyard.reading.reading import read
from steelyard.report.figures import forest
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard compare store/before store/after", "Two stores, treatment by treatment."),
    ("steelyard compare store/quickstart --a nodes=1 --b nodes=2", "Two treatments of one store."),
    ("steelyard compare store/quickstart richardson2017", "Own results against published ones."),
)
EXIT_DECIDED, EXIT_UNDECIDED, EXIT_FAILED = 0, 1, 1
MOST_DIFFERENCES = 12
"""Lines of a kind on the screen; `--json` has all."""


class FailOn(StrEnum):
    """Verdicts that a command line may ask to fail on."""

    SLOWER = "slower"
    UNDECIDED = "undecided"


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A store, such as store/before.", autocompletion=completion.stores)
    ],
    b: OtherSide = None,
    fixed_a: FixedA = None,
    fixed_b: FixedB = None,
    response_name: Annotated[
        str | None,
        typer.Option(
            "--response",
            metavar="NAME",
            help="What to compare: throughput, time, p50, p95, p99 or another response of the store, such as "
            "cpu_percent_mean; several with commas; otherwise the study's main response.",
            autocompletion=completion.response_names,
        ),
    ] = None,
    margin_percent: Margin = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Draw the comparison into FILE.svg, FILE.png or FILE.pdf."),
    ] = None,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(
            "--fail-on",
            metavar="slower|undecided",
            help="Exit with 1 only if side b is slower (or has more of what should be less), or if a comparison is "
            "undecided; may be given twice.",
        ),
    ] = None,
    as_json: Json = False,
    workers: Workers = 1,
    cluster: Cluster = "",
) -> int:
    """Print the comparisons. Returns 0 if every one is decided (or, against a reference, agrees), otherwise 1; with
    `fail_on`, 1 if any of them has that verdict, otherwise 0.

    Raises StudyError for what cannot be compared, StoreError for what cannot be read.
    """
    with readers(workers, cluster) as executor:
        if b is not None and not _is_store(b):
            _refuse_beside_reference(fail_on)
            from steelyard.cli.compare_published import compare_with_reference

            return compare_with_reference(
                read(a, executor), b, fixed_a=fixed_a or (), fixed_b=fixed_b or (), response_name=response_name,
                margin_percent=margin_percent, figure_path=figure, as_json=as_json,
            )  # fmt: skip
        if figure is not None:
            forest.refuse_other(figure)
        first = read(a, executor)
        second = first if b is None else read(b, executor)
        comparisons = comparing.compare_each(
            first, second, a=fixed_a or (), b=fixed_b or (), margin_percent=margin_percent,
            responses=response_list([response_name]) if response_name else (first.study.analysis.response,),
        )  # fmt: skip
    if figure is not None:
        _refuse_several(comparisons, figure)
    for side in (first,) if second is first else (first, second):
        warn_of_damages(message_console(), side.store.damages)
    if as_json:
        print(json_text(_as_json(comparisons), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(comparisons)
    if figure is not None:
        forest.write_comparison(comparisons[0], figure)
    return _exit_code(comparisons, fail_on or ())


def _refuse_several(comparisons: Sequence[Comparison], figure: Path) -> None:
    """Raises StudyError for a figure of several responses."""
    if len(comparisons) > 1:
        raise StudyError(
            f"--figure {figure}: a figure shows one response, not {len(comparisons)}",
            "name one with --response; without --figure several are compared",
            key="--figure",
        )


def _print(comparisons: Sequence[Comparison]) -> None:
    """A table per response, then the remarks."""
    console = data_console()
    for sentence in comparisons[0].looks:
        say(console, Text(sentence, style="bold yellow"))
    for comparison in comparisons:
        draw(comparison.a, comparison.b, comparison.contrasts, console)
        print_wrapped(
            Text(capital(footer(comparison.contrasts, comparison.floors, comparison.designs)), style="dim"), console
        )
        console.print()
    _remarks(comparisons[0], console)


def _exit_code(comparisons: Sequence[Comparison], fail_on: Sequence[FailOn]) -> int:
    """By the verdicts that were asked for; without any, by whether all comparisons are decided."""
    verdicts = [contrast.verdict for comparison in comparisons for contrast in comparison.contrasts]
    final = all(contrast.final for comparison in comparisons for contrast in comparison.contrasts)
    undecided = not final or not DECIDED.issuperset(verdicts)
    if not fail_on:
        return EXIT_UNDECIDED if undecided else EXIT_DECIDED
    slower = FailOn.SLOWER in fail_on and any(
        contrast.verdict in ("slower", _worse(comparison.response))
        for comparison in comparisons
        for contrast in comparison.contrasts
    )
    return EXIT_FAILED if slower or (undecided and FailOn.UNDECIDED in fail_on) else EXIT_DECIDED


def _worse(response: str) -> str:
    """The verdict that means a loss; `slower` too of a response that is neither better nor worse."""
    return {"less": "higher", "more": "lower", "neither": "slower"}[better_of(response)]


def _refuse_beside_reference(fail_on: Sequence[FailOn] | None) -> None:
    """Raises StudyError for verdicts that a reference does not have."""
    if fail_on:
        hint = "against a reference the exit code is 0 if all numbers agree, otherwise 1"
        raise StudyError("--fail-on is for two sides of trials", hint, key="--fail-on")


def _is_store(name: str) -> bool:
    return Path(name).exists()


def _remarks(comparison: Comparison, console: Console) -> None:
    for sentence in comparison.warnings:
        print_wrapped(Text(f"! {sentence}", style="yellow"), console)
    differences = comparison.differences
    for kind in dict.fromkeys(difference.kind for difference in differences if difference.kind != "time"):
        of_kind = [difference for difference in differences if difference.kind == kind]
        head = "compared" if kind == "asked" else f"{kind} differs"
        for difference in of_kind[:MOST_DIFFERENCES]:
            print_wrapped(Text.assemble((f"{head:<16}", "dim"), difference.words()), console)
        if len(of_kind) > MOST_DIFFERENCES:
            more = len(of_kind) - MOST_DIFFERENCES
            say(console, Text.assemble((f"{head:<16}", "dim"), f"and {more} more: --json"))
    for text in comparison.missing:
        print_wrapped(Text(capital(text), style="dim"), console)
    say_limits(console, comparison.limits)


def _as_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    comparison = comparisons[0]
    a, b = comparison.a, comparison.b
    return {
        "a": {"name": a.name, "fixed": dict(a.fixed)},
        "b": {"name": b.name, "fixed": dict(b.fixed)},
        "looks": list(comparison.looks),
        "unit_of_replication": "start",
        "comparisons": [contrast.model_dump(mode="json") for one in comparisons for contrast in one.contrasts],
        "differences": [difference.model_dump(mode="json") for difference in comparison.differences],
        "warnings": list(comparison.warnings),
        "noise_floor": list(dict.fromkeys(text for one in comparisons for text in one.floor_sentences)),
        "missing": list(comparison.missing),
        "limits": list(comparison.limits),
    }
