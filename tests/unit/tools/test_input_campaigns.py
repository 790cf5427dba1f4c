"""Some cases of the campaigns of studies, orders, servers and full disks; all: `python -m tools.campaigns NAME`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tools.campaigns.__main__ import CAMPAIGNS, SEED
from tools.campaigns.runner import carry_out
from tools.campaigns.servers import FURTHER

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "faults.md"
SERVERS = (
    "closes at once", "resets", "speaks HTTP", "announces 2 GB", "half a body", "asks for a password",
    *(f"{protocol}: an overloaded server" for protocol in FURTHER),
)  # fmt: skip
"""Those that end at once."""


def findings_of(name: str, folder: Path, wanted: Any) -> dict[str, Any]:
    """Findings of the cases of a campaign that are wanted; of each case that has one."""
    campaign = CAMPAIGNS[name]
    cases = [case for index, case in enumerate(campaign.cases(SEED)) if wanted(index, case.name)]
    assert cases
    lines = carry_out(campaign, cases, folder / "outcomes.jsonl")
    assert len(lines) == len(cases)
    return {case: line["findings"] for case, line in lines.items() if line["findings"]}


def test_studies_in_small(tmp_path: Path) -> None:
    assert findings_of("studies", tmp_path, lambda index, name: index < 21) == {}


@pytest.mark.agent
def test_orders_in_small(tmp_path: Path) -> None:
    assert findings_of("orders", tmp_path, lambda index, name: index < 15) == {}


@pytest.mark.agent
def test_servers_in_small(tmp_path: Path) -> None:
    assert findings_of("servers", tmp_path, lambda index, name: name in SERVERS) == {}


@pytest.mark.root
@pytest.mark.agent
def test_full_disks_in_small(tmp_path: Path) -> None:
    """tests/unit/lab/test_full_disk.py has all places, without a cluster."""
    assert findings_of("disk", tmp_path, lambda index, name: name == "the seal") == {}


@pytest.mark.parametrize("name", ["studies", "orders", "servers", "disk"])
def test_the_page_has_the_cases_that_there_are(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    cases = CAMPAIGNS[name].cases(SEED)
    strata = Counter(f"{name}: {case.stratum}" for case in cases)
    for stratum, number in strata.items():
        assert re.search(rf"^\| {stratum} \| {number} \|", page, re.MULTILINE), (stratum, number)
