"""What `steelyard audit` says of two shipped studies, kept as text so that a change of it is seen in the diff.

`STEELYARD_REWRITE_GOLDEN=1 pytest tests/golden` writes it anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.cli.commands import audit
from tests.unit.cli.screen import printed


@pytest.mark.parametrize("name", ["srinadhuni2018", "richardson2017"])
def test_audit(name: str) -> None:
    found = printed(lambda: audit.audit(name), width=100)
    text = "\n".join(line.rstrip() for line in found.out.splitlines()) + f"\nexit {found.code}\n"
    kept = Path(__file__).parent / f"{name}.txt"
    if os.environ.get("STEELYARD_REWRITE_GOLDEN"):
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")
