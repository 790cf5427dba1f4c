"""What `steelyard audit` says of two shipped studies, kept as text so that a change of it is seen in the diff.

`STEELYARD_REWRITE_GOLDEN=1 pytest tests/golden` writes it anew.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from steelyard.cli import audit


@pytest.mark.parametrize("name", ["srinadhuni2018", "richardson2017"])
def test_audit(name: str) -> None:
    out = io.StringIO()
    screen = Console(file=out, width=100, color_system=None)
    code = audit.audit(
        name, digits=None, count=None, quartiles="any", whole_numbers=False, as_json=False, console=screen
    )
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + f"\nexit {code}\n"
    kept = Path(__file__).parent / f"{name}.txt"
    if os.environ.get("STEELYARD_REWRITE_GOLDEN"):
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")
