"""Texts in which a machine's kernel describes it, wherever the machine is.

Facts are pure functions of such texts. `ThisMachine` reads files when they are asked for; `Sources` notes what would be
read, so that one command on another machine can send it all, and `Received` holds what came.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

STRIPPED = "\0\n "


class Texts(Protocol):
    """Small files of a machine, by path."""

    def text(self, path: str) -> str:
        """The stripped text of a file, or "" if it does not exist or cannot be read."""
        ...

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        ...

    def matching(self, pattern: str) -> list[str]:
        """Paths of the readable files that match a pattern of the shell, sorted."""
        ...


class ThisMachine:
    """Files of this machine; a test may put folders in the place of `/proc` and others."""

    def __init__(self, roots: Mapping[str, Path] | None = None) -> None:
        self._roots = dict(roots or {})

    def text(self, path: str) -> str:
        """The stripped text of a file, or "" if it does not exist or cannot be read."""
        with contextlib.suppress(OSError):
            return self._here(path).read_text(encoding="utf-8", errors="replace").strip(STRIPPED)
        return ""

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return self._here(path).exists()

    def matching(self, pattern: str) -> list[str]:
        """Paths that match a pattern of the shell, sorted."""
        top = "/" + pattern.split("/")[1]
        here = self._roots.get(top, Path(top))
        rest = pattern.removeprefix(top).lstrip("/")
        return sorted(f"{top}/{path.relative_to(here)}" for path in here.glob(rest))

    def _here(self, path: str) -> Path:
        for top, folder in self._roots.items():
            if path == top or path.startswith(f"{top}/"):
                return folder / path.removeprefix(top).lstrip("/")
        return Path(path)


class Sources:
    """A machine of which nothing is known: notes the paths and patterns that are asked for."""

    def __init__(self) -> None:
        self.patterns: dict[str, None] = {}

    def text(self, path: str) -> str:
        """Nothing; the path is noted."""
        self.patterns[path] = None
        return ""

    def has(self, path: str) -> bool:
        """No; the path is noted."""
        self.patterns[path] = None
        return False

    def matching(self, pattern: str) -> list[str]:
        """Nothing; the pattern is noted."""
        self.patterns[pattern] = None
        return []


class Received:
    """Texts of another machine."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def text(self, path: str) -> str:
        """The stripped text of a file, or "" if it did not come."""
        return self._texts.get(path, "").strip(STRIPPED)

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._texts

    def matching(self, pattern: str) -> list[str]:
        """Paths that match a pattern of the shell, sorted."""
        parts = pattern.split("/")
        same_depth = (path for path in sorted(self._texts) if path.count("/") == len(parts) - 1)
        return [
            path
            for path in same_depth
            if all(fnmatch.fnmatchcase(part, wanted) for part, wanted in zip(path.split("/"), parts, strict=True))
        ]
