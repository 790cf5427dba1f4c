"""`python -m tools.gate_rates`: draw studies of planted builds, judge them, write the tables of the gate's page."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tools.gate_rates.cases import OF_THE_COUNT, Planted, Row, all_hold, count, every

STUDIES = 2000
SEED = 20261122
BEGIN = "<!-- rates: made by `python -m tools.gate_rates`, not to be edited -->\n"
END = "<!-- end of rates -->\n"


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, a table per family."""
    lines: list[str] = []
    for family in dict.fromkeys(row.planted.family for row in rows):
        lines += [f"### {family}", "", "| truth | change | margin | blocks | announced or promised | counted | |"]
        lines.append("| --- | --- | --- | ---: | ---: | ---: | --- |")
        for row in rows:
            if row.planted.family == family:
                lines.append(_line(row))
        lines.append("")
    return "\n".join(lines).rstrip()


def _line(row: Row) -> str:
    planted, (low, high) = row.planted, row.ends
    at_most = "at most " if planted.against == "at most" else ""
    share = f"{at_most}{100 * planted.share:.1f}% {'red' if planted.counted == 'worse' else 'green'}"
    counted = f"{100 * row.counted / row.studies:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"
    cells = (planted.words, planted.changes, f"{planted.margin_percent:g}%", str(planted.blocks), share, counted,
             "holds" if row.holds else "**fails**")  # fmt: skip
    return f"| {' | '.join(cells)} |"


def page(rows: Sequence[Row], studies: int, seed: int) -> str:
    """What stands between the marks of the page."""
    about = f"{studies:,} studies a row, seed {seed}; brackets: exact {OF_THE_COUNT:.0%} interval of the count."
    return f"{about}\n\n{table(rows)}"


def written(before: str, text: str) -> str:
    """The page with the tables between its marks. Raises ValueError if it has no marks."""
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN.strip()} ... {END.strip()}")
    return f"{head}{begin}\n{text}\n\n{end}{tail}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if a rate is not what was announced or promised."""
    parser = argparse.ArgumentParser(prog="python -m tools.gate_rates", description=__doc__)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the tables into this page")
    parser.add_argument("--studies", type=int, default=STUDIES, help=f"studies a row (default {STUDIES:,})")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=1, help="how many at once (default 1)")
    asked = parser.parse_args(arguments)
    work = partial(_counted, studies=asked.studies, seed=asked.seed)
    with ProcessPoolExecutor(asked.processes, mp_context=multiprocessing.get_context("fork")) as forked:
        rows = []
        for row in forked.map(work, every()):
            rows.append(row)
            print(_line(row), file=sys.stderr, flush=True)
    text = page(rows, asked.studies, asked.seed)
    if asked.write:
        asked.write.write_text(written(asked.write.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)
    return 0 if all_hold(rows) else 1


def _counted(planted: Planted, *, studies: int, seed: int) -> Row:
    return count(planted, studies, seed)


if __name__ == "__main__":
    sys.exit(main())
