"""The methods paragraph for a paper: the page's method in prose, with hardware, settings and seeds."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

import steelyard
from steelyard.format import count, listed
from steelyard.model.facts import MACHINE, of_machines
from steelyard.reading.report_input import ReportInput
from steelyard.report.prose import method_and_facts

HARDWARE: Final = {
    "cpu_model": "processor", "cores": "cores", "memory_mb": "memory (MB)", "kernel": "kernel",
    "virtualisation": "virtualisation", "java": "Java", "disk": "disk", "architecture": "architecture",
}  # fmt: skip
"""Facts that a reader of a paper asks for, and what they are called there."""
LINE: Final = 100


def paragraph(made_of: ReportInput) -> str:
    """The whole text: paragraphs of lines of at most 100 characters, ready for a methods section."""
    found = [
        *method_and_facts.method(made_of.study, made_of.plan, made_of.records, made_of.results),
        _hardware(made_of.facts),
        _settings(made_of),
        _artefacts(made_of),
    ]
    return "\n\n".join(textwrap.fill(text, LINE, break_on_hyphens=False) for text in found if text) + "\n"


def _hardware(facts: Mapping[str, Mapping[str, str]]) -> str:
    groups: dict[str, list[str]] = {}
    for name, found in of_machines(facts).items():
        known = [f"{called} {found[fact]}" for fact, called in HARDWARE.items() if found.get(fact)]
        if known:
            groups.setdefault(", ".join(known), []).append("the machine" if name == MACHINE else f"node {name}")
    told = [f"{listed(sorted(names))}: {text}" for text, names in groups.items()]
    return f"Hardware and kernel, as the nodes report them: {'; '.join(told)}." if told else ""


def _settings(made_of: ReportInput) -> str:
    asked = method_and_facts.asked(made_of.study)
    told = "; ".join(f"{fact.name} = {fact.value}" for fact in asked)
    return f"Settings that differ from the laboratory's defaults: {told}." if asked else ""


def _artefacts(made_of: ReportInput) -> str:
    sealed = sum(bool(record.checksums) for record in made_of.records)
    return (
        f"The order was drawn with seed {made_of.study.design.seed}; each trial's operations were drawn with a seed "
        f"that its record keeps. The store holds the raw histograms, samples and facts of {count(sealed, 'attempt')} "
        f"with their SHA-256 checksums, and the study file; tables and figures were made by Steelyard "
        f"{steelyard.__version__} from it."
    )
