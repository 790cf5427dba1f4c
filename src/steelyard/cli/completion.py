"""Completion in shells: study files, stores, levels, responses and published names, from what is on this machine.

A shell's script (`cli/commands/completion.py`) calls the program with the line up to the cursor in `VARIABLE`; the
answer is a line for each candidate, and a tab and its meaning where it has one. None means: names of files.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete

from steelyard import no_links
from steelyard.shown_text import visible
from steelyard.store import layout

VARIABLE: Final = "_STEELYARD_COMPLETE"
MOST_ENTRIES: Final = 2_000
"""Entries of a folder that are looked at."""
MOST_BYTES: Final = 8 << 20
"""Maximum size of a study whose levels are offered."""
MOST_LEVELS: Final = 200


def answer(line: str, command_line: Callable[[str], typer.Typer]) -> None:
    """Print the candidates for the word at the end of a line."""
    *before, incomplete = line.split(" ")
    wanted = next((word for word in before[1:] if word and not word.startswith("-")), "")
    # Typer's protocol for fish, a line for each candidate; typer learns the protocols when it is asked for its options.
    os.environ |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    get_completion_inspect_parameters()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        shell_complete(typer.main.get_command(command_line(wanted)), {}, "steelyard", VARIABLE, "complete_fish")
    for candidate in output.getvalue().splitlines():
        # An option that is a path, and has no candidates, gives back what was typed. A name with characters that a
        # terminal obeys is not offered.
        if candidate and candidate != incomplete and candidate == visible(candidate, lines=True):
            print(candidate)


def stores(incomplete: str) -> list[str]:
    """Folders of studies; below a folder that has none, the folders to look into."""
    return _below(incomplete, _stores_in)


def study_files(incomplete: str) -> list[str]:
    """TOML files, also those of the folders that begin so."""
    return _files(incomplete, ".toml")


def _files(incomplete: str, suffix: str) -> list[str]:
    return _below(incomplete, lambda folder: sorted(str(path) for path in _entries(folder) if path.suffix == suffix))


def _stores_in(folder: Path) -> Iterable[str]:
    if (folder / layout.STUDY_JSON).is_file():
        return [str(folder)]
    return sorted(str(path) for path in _entries(folder) if (path / layout.STUDY_JSON).is_file())


def _below(incomplete: str, inside: Callable[[Path], Iterable[str]]) -> list[str]:
    """Matches of `inside` in the folder of the incomplete path and in its folders; otherwise these folders
    themselves."""
    head, _, beginning = incomplete.rpartition("/")
    folder = Path(head or ("/" if incomplete.startswith("/") else "."))
    folders = [path for path in _entries(folder) if path.name.startswith(beginning) and path.is_dir()]
    paths = [text for path in (folder, *folders) for text in inside(path) if text.startswith(incomplete)]
    return list(dict.fromkeys(paths)) or sorted(f"{path!s}/" for path in folders)


def _entries(folder: Path) -> Iterator[Path]:
    """Entries of a folder without the hidden ones; none if it cannot be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
            if not entry.name.startswith("."):
                yield Path(folder, entry.name)


def workloads(incomplete: str) -> list[str]:
    """Workloads by name, and TOML files."""
    from steelyard.plugins import find

    return [*(name for name in find.names("workload") if name.startswith(incomplete)), *study_files(incomplete)]


def sites(incomplete: str) -> list[str]:
    """Sites by name."""
    from steelyard.plugins import find

    return [name for name in find.names("site") if name.startswith(incomplete)]


def published(incomplete: str) -> list[tuple[str, str]]:
    """Published studies and their tables, with their titles."""
    from steelyard.reference import tables

    named = {table.name: table.title for table in tables.tables().values()}
    named |= {table.source.name: table.source.title for table in tables.tables().values()}
    return [(name, title) for name, title in sorted(named.items()) if name.startswith(incomplete)]


def tables(incomplete: str) -> list[str]:
    """Names for `audit`: published tables, and CSV files."""
    return [*_files(incomplete, ".csv"), *(name for name, _ in published(incomplete))]


def stores_and_published(incomplete: str) -> list[str]:
    """Names to compare a store with."""
    return [*stores(incomplete), *(name for name, _ in published(incomplete))]


def response_names(incomplete: str) -> list[tuple[str, str]]:
    """Responses, with their common names."""
    from steelyard.model import responses

    return [(name, one.label) for name, one in responses.every().items() if name.startswith(incomplete)]


def levels(ctx: typer.Context, incomplete: str) -> list[str]:
    """`FACTOR=LEVEL` of the store that is named before; of several with commas, the last."""
    from steelyard.model.named_level import level_key

    before, comma, last = incomplete.rpartition(",")
    taken = {part.partition("=")[0] for part in before.split(",")}
    pairs = [
        f"{factor}={level_key(level)}"
        for factor, of_factor in _factors([*ctx.params.values(), *ctx.args]).items()
        if factor not in taken
        for level in of_factor[:MOST_LEVELS]
    ]
    return [f"{before}{comma}{pair}" for pair in pairs if pair.startswith(last)]


def _factors(given: Iterable[object]) -> dict[str, list[Any]]:
    """Factors with their levels of the stores among what was typed; none if no study can be read."""
    factors: dict[str, list[Any]] = {}
    for value in given:
        if isinstance(value, str | Path):
            with contextlib.suppress(OSError, ValueError):
                study = json.loads(no_links.content(Path(value) / layout.STUDY_JSON, Path(value), MOST_BYTES))
                for factor, of_factor in dict(study.get("factors") or {}).items():
                    known = factors.setdefault(factor, [])
                    known += [level for level in of_factor if level not in known]
    return factors
