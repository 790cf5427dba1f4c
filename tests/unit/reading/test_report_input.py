"""What a report reads of the facts of nodes: what each site's nodes are in, and whether processors were emulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.reading.reading import read
from steelyard.report.prose.provenance import hardware
from tests.unit.report import synthetic

EMULATED = "The processors of virtual machines were emulated"


@pytest.mark.parametrize(
    ("facts", "enclosed", "emulated"),
    [
        ({}, "", False),
        ({"container_engine": "Docker 27.1"}, "database nodes in Docker containers", False),
        ({"vm_emulator": "QEMU 7.2", "vm_accelerator": "kvm"}, "database nodes in virtual machines", False),
        ({"vm_emulator": "QEMU 7.2", "vm_accelerator": "tcg"}, "database nodes in virtual machines", True),
    ],
    ids=["processes", "containers", "virtual machines", "emulated"],
)
def test_what_nodes_are_in_follows_from_their_facts(
    tmp_path: Path, facts: dict[str, str], enclosed: str, emulated: bool
) -> None:
    page_input = read(synthetic.stored(tmp_path, **facts)).report_input(courses=False)
    assert (enclosed or "all nodes on one machine; Cassandra") in hardware(page_input)
    assert any(caveat.startswith(EMULATED) for caveat in page_input.results.caveats) == emulated


def test_what_a_system_says_of_itself_is_said_once_in_the_answer(tmp_path: Path) -> None:
    said = "Cassandra 3.9 ran on Java 11; its releases were made for Java 8."
    page_input = read(synthetic.stored(tmp_path, {"caveat: Java": said})).report_input(courses=False)
    assert page_input.results.caveats.count(said) == 1
