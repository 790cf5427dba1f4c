"""Files of the repository that are made from the models: written on demand, and checked by a test."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def keep(content: str, description: str, argv: Sequence[str] | None = None) -> int:
    """Command line `FILE [--write]`: write a generated file, or say whether it is up to date (1 if not)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true", help="write the file instead of checking it")
    asked = parser.parse_args(argv)
    if asked.write:
        asked.file.write_text(content, encoding="utf-8")
        return 0
    if asked.file.is_file() and asked.file.read_text(encoding="utf-8") == content:
        return 0
    print(f"{asked.file} is not up to date: run the same command with --write", file=sys.stderr)
    return 1
