"""The promise about stores of somebody else, as a test: what it says proves it is there, and its limits are those."""

from __future__ import annotations

import re
from pathlib import Path

from tools.campaigns.__main__ import CAMPAIGNS, SEED

from steelyard.format import data_size
from steelyard.store import plain_file, tables

ROOT = Path(__file__).resolve().parents[2]
PROMISE = (
    (ROOT / "docs" / "reference" / "store.md")
    .read_text(encoding="utf-8")
    .partition("## A store of somebody else\n")[2]
    .partition("\n## ")[0]
)


def test_every_test_that_the_promise_names_is_there() -> None:
    named = re.findall(r"`((?:tests|tools)/[\w/]+\.py)`", PROMISE)
    assert len(named) >= 4
    assert [path for path in named if not (ROOT / path).is_file()] == []
    proofs = [(ROOT / path).read_text(encoding="utf-8") for path in named if path.startswith("tests/")]
    assert all(re.search(r"^def test_", proof, re.MULTILINE) for proof in proofs)


def test_the_limits_are_those_of_the_program() -> None:
    for limit in (
        plain_file.MOST_RECORD_BYTES,
        plain_file.MOST_TEXT_BYTES,
        plain_file.MOST_PAGE_BYTES,
        plain_file.MOST_FILE_BYTES,
    ):
        assert f"| {data_size(limit)} |" in PROMISE
    assert f"| {tables.MOST_ROWS:,} rows |" in PROMISE
    assert f"| {data_size(tables.MOST_UNPACKED_BYTES)} unpacked |" in PROMISE


def test_the_campaign_has_the_kinds_that_its_page_counts() -> None:
    page = (ROOT / "docs" / "explanation" / "faults.md").read_text(encoding="utf-8")
    section = page.partition("## Hostile stores\n")[2].partition("\n## ")[0]
    cases = CAMPAIGNS["hostile_stores"].cases(SEED)
    assert len(cases) >= 60
    strata = [case.stratum for case in cases]
    for stratum in {*strata, "all"}:
        number = len(cases) if stratum == "all" else strata.count(stratum)
        assert re.search(rf"^\| {stratum} \| {number} \|", section, re.MULTILINE), (stratum, number)
