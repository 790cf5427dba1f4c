"""`python -m tools.docs.pictures --stores FOLDER`: render the pictures of the how-to pages again, by hand.

FOLDER has stores of the names in the tables below. A picture whose store is not there stays as it is, and is named at
the end. The pictures of a study in progress need no store: `studies/burst.toml` is measured for them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.docs.pictures import browser, terminal

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / "docs" / "figures"
WATCHED: Final = "burst"
QUICKSTART: Final = "quickstart"


@dataclass(frozen=True)
class ReportFigure:
    """A picture that is a figure of `steelyard report --figures`: the first whose name there begins so."""

    name: str
    store: str
    figure: str


@dataclass(frozen=True)
class CommandScreen:
    """A picture of a command with its output; STORE stands for the store's path."""

    name: str
    store: str
    words: tuple[str, ...]


FIGURES: Final = (
    ReportFigure("highest-rate", "highest-rate", "main"),
    ReportFigure("named-levels", "named-levels", "main"),
    ReportFigure("burst", "burst", "time-"),
    ReportFigure("identical-systems", "noise-floor", "main"),
)
SIDES: Final = ("--a", "nodes=1", "--b", "nodes=2")
SCREENS: Final = (
    CommandScreen("compare", QUICKSTART, ("compare", "STORE", *SIDES)),
    CommandScreen("gate", QUICKSTART, ("gate", "STORE", *SIDES, "--margin", "5%")),
)
RUNS: Final = "document.body.innerText.includes('in progress') && document.querySelectorAll('svg').length > 0"
"""True of the page of a study in progress once its graphs are drawn."""


ANSWERED: Final = "document.querySelector('table.answer') !== null"
"""True of the page of a finished study once its answer is computed."""


def of_stores(stores: Path, into: Path) -> list[str]:
    """Write the pictures of finished studies. Returns the names of those whose store is not there."""
    lacking = []
    with tempfile.TemporaryDirectory(prefix="steelyard-pictures-") as temporary:
        # Commands in pictures name it so.
        folder = Path(temporary, "store")
        for picture in (*FIGURES, *SCREENS):
            if not (stores / picture.store).is_dir():
                lacking.append(f"{picture.name} (store {picture.store})")
                continue
            if not (folder / picture.store).exists():
                shutil.copytree(stores / picture.store, folder / picture.store)
            if isinstance(picture, ReportFigure):
                figures = folder.parent / f"figures-{picture.store}"
                if not figures.exists():
                    _steelyard("report", f"store/{picture.store}", "--figures", figures.name, folder=folder.parent)
                names = [line.partition(": ")[0] for line in (figures / "captions.txt").read_text().splitlines()]
                shutil.copy(figures / f"{_first(names, picture)}.svg", into / f"{picture.name}.svg")
            else:
                words = [f"store/{picture.store}" if word == "STORE" else word for word in picture.words]
                (into / f"{picture.name}.svg").write_text(terminal.picture(words, folder.parent), encoding="utf-8")
        if (folder / QUICKSTART).exists():
            _steelyard("report", f"store/{QUICKSTART}", "-o", "page.html", folder=folder.parent)
            browser.photograph_report(folder.parent / "page.html", into / "report.png")
            browser.photograph_study(folder, QUICKSTART, into / "watch-finished.png", until=ANSWERED)
    return lacking


def _first(names: Sequence[str], picture: ReportFigure) -> str:
    """The first figure whose name begins as the picture's. Raises ValueError if there is none."""
    found = next((name for name in names if name.startswith(picture.figure)), None)
    if found is None:
        raise ValueError(
            f"picture {picture.name}: the report of store {picture.store} has no figure {picture.figure}..., only "
            f"{', '.join(names) or 'none'}: change FIGURES in tools/docs/pictures/__main__.py"
        )
    return found


def of_a_running_study(into: Path) -> None:
    """Measure a study, and write its page and its live screen. A busy machine delays it."""
    with tempfile.TemporaryDirectory(prefix="steelyard-pictures-") as temporary:
        study = ROOT / "studies" / f"{WATCHED}.toml"
        with terminal.study_in_progress(Path(temporary), study) as newest:
            (into / "watch-terminal.svg").write_text(newest(), encoding="utf-8")
            browser.photograph_study(Path(temporary, "store"), WATCHED, into / "watch-running.png", until=RUNS)


def _steelyard(*words: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "steelyard", *words], cwd=folder, check=False)
    # 1: some trials are not valid.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"steelyard {words[0]} ended with {done.returncode}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if a store is not there."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.pictures", description=__doc__)
    parser.add_argument("--stores", type=Path, help="folder with a store for each finished study; without it, none")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the pictures")
    parser.add_argument("--no-run", action="store_true", help="leave out the study in progress, which takes minutes")
    asked = parser.parse_args(arguments)
    asked.into.mkdir(parents=True, exist_ok=True)
    lacking = of_stores(asked.stores, asked.into) if asked.stores else []
    if not asked.no_run:
        of_a_running_study(asked.into)
    for name in lacking:
        print(f"not made: {name}", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
