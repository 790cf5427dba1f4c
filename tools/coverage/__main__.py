"""`python -m tools.coverage`: simulate studies with planted truths, write the coverage page and its figures."""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tools.coverage import changes, curves, energy, interactions, looks, models, sides, single, trends
from tools.coverage.page import BROKEN, FIGURES, figures, page, table
from tools.coverage.tally import Case, Line, count

STUDIES = 4000
SEED = 20261121


@functools.cache
def every_case() -> tuple[Case, ...]:
    """All cells of the coverage report, in its order."""
    families = (single, sides, models, trends, curves, interactions, looks, changes, energy)
    return tuple(case for family in families for case in family.cases())


def run(places: Sequence[int], studies: int, seed: int, processes: int = 1) -> list[Line]:
    """Draw and count the cases at these places of `every_case`; prints progress per family on standard error."""
    begun, cases = time.monotonic(), every_case()
    work = partial(_counted, studies=studies, seed=seed)
    lines: list[Line] = []
    with contextlib.ExitStack() as stack:
        each: Iterable[list[tuple[int, int, int]]] = map(work, places)
        if processes > 1:
            # A case holds functions, which cannot be pickled; a forked process has them already.
            forked = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork"))
            each = stack.enter_context(forked).map(work, places)
        for place, counts in zip(places, each, strict=True):
            case = cases[place]
            if not lines or lines[-1].case.family != case.family:
                print(f"{time.monotonic() - begun:6.0f} s  {case.family}", file=sys.stderr)
            methods = ((case.method, case.use), *case.beside)
            lines += [Line(case, *method, *one) for method, one in zip(methods, counts, strict=True)]
    print(f"{time.monotonic() - begun:6.0f} s  done", file=sys.stderr)
    return lines


def _counted(place: int, *, studies: int, seed: int) -> list[tuple[int, int, int]]:
    return [(line.studies, line.given, line.held) for line in count(every_case()[place], studies, seed)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if one of our own intervals is too narrow."""
    parser = argparse.ArgumentParser(prog="python -m tools.coverage", description=__doc__)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page (and its figures) instead of tables")
    parser.add_argument("--figures", metavar="DIR", type=Path, help="where figures go; default: ../figures from FILE")
    parser.add_argument(
        "--studies", type=int, default=STUDIES, help=f"simulated studies per cell (default {STUDIES:,})"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=1, help="how many at once (default 1)")
    parser.add_argument("--family", default="", help="only families whose name holds this")
    asked = parser.parse_args(arguments)
    if asked.studies < 1:
        parser.error("--studies must be at least 1")
    if asked.processes < 1:
        parser.error("--processes must be at least 1")
    places = [at for at, case in enumerate(every_case()) if asked.family.lower() in case.family.lower()]
    if not places:
        names = ", ".join(dict.fromkeys(case.family for case in every_case()))
        parser.error(f"no family holds {asked.family!r}; there are: {names}")
    if asked.write and asked.family:
        parser.error("--write needs every family: leave --family out")
    lines = run(places, asked.studies, asked.seed, asked.processes)
    if asked.write:
        asked.write.write_text(page(lines, asked.studies, asked.seed), encoding="utf-8")
        folder = asked.figures or asked.write.parent.parent / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        for name, svg in zip(FIGURES, figures(lines), strict=True):
            (folder / name).write_text(svg, encoding="utf-8")
    else:
        for family in dict.fromkeys(line.case.family for line in lines):
            print(f"{family}\n\n{table([line for line in lines if line.case.family == family])}\n")
    narrow = [line for line in lines if line.use == "ours" and line.verdict in BROKEN]
    return 1 if narrow else 0


if __name__ == "__main__":
    sys.exit(main())
