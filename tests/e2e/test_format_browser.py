"""Numbers that the browser's script writes are those that Python writes."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

import steelyard.report
from steelyard.format import number
from tests.e2e.chromium import tab

CHROMIUM = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = Path(steelyard.report.__file__).parent / "templates" / "format.js"
VALUES: tuple[float | None, ...] = (
    None, 0.0, 0.5, 1.0, 2.5, 3.0, 0.125, 0.375, 1.005, 1.015, 9.995, 99.95, 999.5, 1234.5678, -3.25, -1234.5, 1e6,
    1e-9, 0.000123, 12345678.9, 0.1 + 0.2, 1e15,
)  # fmt: skip

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")]


def test_numbers_are_the_same_in_both_languages(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    rng = random.Random(5)
    values = [*VALUES, *(rng.choice((-1, 1)) * 10 ** rng.uniform(-6, 8) for _ in range(300))]
    values += [round(10 ** rng.uniform(-3, 3) * 8) / 8 for _ in range(100)]
    cases = [(value, digits, trim) for value in values for digits in (2, 3, 4, 6) for trim in (None, True, False)]
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><script>{SCRIPT.read_text()}</script>", encoding="utf-8")
    with tab(CHROMIUM, page.as_uri(), tmp_path / "profile") as browser:
        shown = browser.value(f"{json.dumps(cases)}.map(([value, digits, trim]) => shownNumber(value, digits, trim))")
    wanted = [number(value, digits=digits, trim=trim) for value, digits, trim in cases]
    assert [pair for pair in zip(cases, shown, wanted, strict=True) if pair[1] != pair[2]] == []
