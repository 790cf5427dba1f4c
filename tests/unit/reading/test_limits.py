"""What limits an answer goes wherever the answer goes: screens, JSON, JUnit, Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from steelyard.cli.commands import compare as compare_command
from steelyard.cli.commands import gate as gate_command
from steelyard.reading import read
from steelyard.reading.comparison import compare, limits_of
from steelyard.reading.opened import Opened
from steelyard.shown_text import markdown
from tests.unit.cli.screen import printed


def test_both_studies_limits_are_told_once_and_those_of_one_by_its_name(base: Opened, other: Opened) -> None:
    assert limits_of(base, base) == base.results.caveats != ()
    found = limits_of(base, other)
    shared = [text for text in base.results.caveats if text in other.results.caveats]
    assert list(found[: len(shared)]) == shared
    assert {text.partition(": ")[2] for text in found[len(shared) :]} == {
        text for one in (base, other) for text in one.results.caveats if text not in shared
    }


def test_limits_are_in_every_output_of_a_comparison_and_a_gate(tmp_path: Path, base: Opened, other: Opened) -> None:
    a, b = base.store.folder, other.store.folder
    limits = limits_of(base, other)
    screen = printed(lambda: compare_command.compare(str(a), str(b)), width=400).out
    assert all(text in screen for text in limits[:3])
    data = json.loads(printed(lambda: compare_command.compare(str(a), str(b), as_json=True)).out)
    assert data["limits"] == list(limits) == list(compare(read(a), read(b)).limits)
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    screen = printed(
        lambda: gate_command.gate(b, against=a, margin_percent=2.0, junit=junit, markdown=summary), width=400
    ).out
    assert all(text in screen for text in limits[:3])
    properties = [(one.get("name"), one.get("value")) for one in ElementTree.parse(junit).iter("property")]
    assert [value for name, value in properties if name == "limit"] == list(limits)
    assert all(markdown(text) in summary.read_text(encoding="utf-8") for text in limits)
