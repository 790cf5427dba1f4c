"""`python -m tools.docs`: check that the generated files are up to date; `--write` updates them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from steelyard.study import schema
from tools.docs import (
    hardware,
    json_outputs,
    numbers,
    order_schema,
    study_file,
    system_cassandra,
    workload_file,
)

ROOT = Path(__file__).resolve().parents[2]
GENERATED: Mapping[str, Callable[[], str]] = {
    "schema/study.schema.json": schema.text,
    "docs/reference/study-file.md": study_file.text,
    "docs/reference/workload-file.md": workload_file.text,
    **numbers.FILES,
    "docs/reference/system-cassandra.md": system_cassandra.page,
    "docs/reference/hardware.md": hardware.page,
    "schema/order.schema.json": order_schema.text,
    **json_outputs.FILES,
}
"""Path below the repository's root to the function that generates its text."""


def out_of_date(root: Path, generated: Mapping[str, Callable[[], str]] = GENERATED) -> list[str]:
    """The generated files whose text differs from what the models give now."""

    def differs(path: Path, text: str) -> bool:
        return not path.is_file() or path.read_text(encoding="utf-8") != text

    return [name for name, make in generated.items() if differs(root / name, make())]


def main(
    arguments: Sequence[str] | None = None,
    root: Path = ROOT,
    generated: Mapping[str, Callable[[], str]] = GENERATED,
) -> int:
    """Returns 0, or 1 if a file is out of date and `--write` is not given."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is not up to date instead of naming it")
    write = parser.parse_args(arguments).write
    names = out_of_date(root, generated)
    for name in names:
        if write:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(generated[name](), encoding="utf-8")
            print(f"written: {name}")
        else:
            print(f"not up to date: {name}; python -m tools.docs --write", file=sys.stderr)
    return 1 if names and not write else 0


if __name__ == "__main__":
    sys.exit(main())
