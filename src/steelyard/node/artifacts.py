"""Checksums of fetched programs: the expected content of each file, and the refusal of any other before it runs.

A list has a line per file, as `sha256sum` writes them. For the versions that are fetched by default it is shipped; for
any other one it is written at the first use, next to the files, and holds afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.node.fetch import Fault, Say

LIST = "SHA256SUMS"
MOST_NAMED = 3
"""Files that an error names."""


def sums(paths: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of files, by name, sorted."""
    by_name = {}
    for path in sorted(paths, key=lambda path: path.name):
        with path.open("rb") as file:
            by_name[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return by_name


def parse(text: str) -> dict[str, str]:
    """The checksums of a list, by name. Pure."""
    lines = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return {name: checksum for checksum, name in lines}


def shipped(package: str, name: str) -> str | None:
    """The text of a list that is among a package's files; None if none is shipped."""
    file = resources.files(package) / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


def differences(present: Mapping[str, str], listed: Mapping[str, str]) -> list[str]:
    """Differences between files and their list: a phrase per file, sorted by name. Pure."""
    words = dict.fromkeys(present.keys() - listed.keys(), "is not on the list")
    words |= dict.fromkeys(listed.keys() - present.keys(), "is missing")
    words |= {name: "has different content" for name in present.keys() & listed.keys() if present[name] != listed[name]}
    return [f"{name} {what}" for name, what in sorted(words.items())]


@dataclass(frozen=True)
class Release:
    """The files of a program in a folder of the cache, and the list that they are held against."""

    what: str
    """Its name and version, for messages."""
    folder: Path
    """Path of its own list, if none is shipped."""
    shipped: str | None
    """The text of the shipped list."""
    setup: str
    """The command that fetches it."""
    fault: Fault

    def check_fetched(self, paths: Sequence[Path]) -> None:
        """Raise `fault` for files that have just been fetched and are not those of the shipped list."""
        if self.shipped is not None and (wrong := differences(sums(paths), parse(self.shipped))):
            raise self.fault(
                f"{self.what}: the SHA-256 of fetched files differs from the shipped list: {_named(wrong)}; "
                "nothing was kept",
                "check which repository or mirror Maven uses (its settings.xml), and do not run the files it delivered",
            )

    def check(self, paths: Sequence[Path], say: Say) -> dict[str, str]:
        """Checksums of the files before any of them runs. Raises `fault` that names those which differ from the list.
        Without a shipped list, the first use writes one, and `say` reports it."""
        present, own = sums(paths), self.folder / LIST
        if self.shipped is None and not own.is_file():
            text = "".join(f"{checksum}  {name}\n" for name, checksum in present.items())
            replace_file(own, text)
            say(
                f"{self.what}: Steelyard ships no checksums for it: {own} now has those of its "
                f"{len(present)} files, and every start compares them"
            )
            return present
        listed = parse(own.read_text(encoding="utf-8") if self.shipped is None else self.shipped)
        if wrong := differences(present, listed):
            place = paths[0].parent if paths else self.folder
            raise self.fault(
                f"{self.what}: files in {place} differ from those fetched: {_named(wrong)}; nothing was started",
                f"remove {self.folder} and run `{self.setup}` to fetch it again; find out who changed it",
            )
        return present


def _named(wrong: Sequence[str]) -> str:
    more = len(wrong) - MOST_NAMED
    return ", ".join(wrong[:MOST_NAMED]) + (f", and {more} more" if more > 0 else "")
