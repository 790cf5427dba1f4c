"""Methods section for a paper as plain text: the method with hardware, settings and seeds."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

import steelyard
from steelyard.format import count, listed
from steelyard.model.facts import MACHINE, of_machines
from steelyard.model.study import Study
from steelyard.reading.report_input import ReportInput
from steelyard.report.prose import method_and_facts

HARDWARE: Final = {
    "cpu_model": "processor", "cores": "cores", "memory_mb": "memory (MB)", "kernel": "kernel",
    "virtualisation": "virtualisation",
    "vm_accelerator": "virtual machine by", "java": "Java", "disk": "disk", "architecture": "architecture",
}  # fmt: skip
"""Facts that readers of a paper need, with their names in the text."""
LINE: Final = 100


def paragraph(page_input: ReportInput) -> str:
    """The whole text: paragraphs with lines of at most 100 characters, ready for a methods section."""
    paragraphs = [
        *method_and_facts.method(page_input.study, page_input.plan, page_input.records, page_input.results),
        _named_levels(page_input.study),
        _hardware(page_input.facts),
        _settings(page_input),
        _artefacts(page_input),
    ]
    return "\n\n".join(textwrap.fill(text, LINE, break_on_hyphens=False) for text in paragraphs if text) + "\n"


def _named_levels(study: Study) -> str:
    stated = [
        f"{factor} {level}{f' ({number})' if (number := named.number_in_words()) else ''}: {named.fields_in_words()}"
        for factor, levels in study.tried.items()
        for level in levels
        if (named := study.named_level(factor, level)) is not None
    ]
    return f"What each named level sets: {'; '.join(stated)}." if stated else ""


def _hardware(facts: Mapping[str, Mapping[str, str]]) -> str:
    groups: dict[str, list[str]] = {}
    for name, node_facts in of_machines(facts).items():
        known = [f"{called} {node_facts[fact]}" for fact, called in HARDWARE.items() if node_facts.get(fact)]
        if known:
            groups.setdefault(", ".join(known), []).append("the machine" if name == MACHINE else f"node {name}")
    machines = [f"{listed(sorted(names))}: {text}" for text, names in groups.items()]
    return f"Hardware and kernel, as the nodes report them: {'; '.join(machines)}." if machines else ""


def _settings(page_input: ReportInput) -> str:
    asked = method_and_facts.asked(page_input.study)
    settings = "; ".join(f"{fact.name} = {fact.value}" for fact in asked)
    return f"Settings that differ from the laboratory's defaults: {settings}." if asked else ""


def _artefacts(page_input: ReportInput) -> str:
    sealed = sum(bool(record.checksums) for record in page_input.records)
    return (
        f"The order was drawn with seed {page_input.study.design.seed}; each trial's operations were drawn with a seed "
        f"that its record keeps. The store holds the raw histograms, samples and facts of {count(sealed, 'attempt')} "
        f"with their SHA-256 checksums, and the study file; tables and figures were made by Steelyard "
        f"{steelyard.__version__} from it."
    )
