"""Files of a gate for CI services: JUnit (one test case per cell and response) and a Markdown summary."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from steelyard import shown_text
from steelyard.analysis.gate import Gate, GateCase, margin_words
from steelyard.analysis.wording import capital, change_text, quantities
from steelyard.atomic_file import write_output
from steelyard.format import confidence_text, number
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of

SUMMARY_VARIABLE: Final = "GITHUB_STEP_SUMMARY"
"""Names the file that GitHub shows as the summary of a job; earlier commands of a step may have written to it."""
NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""
SYMBOLS: Final = {"not worse": "✅", "worse": "❌", "undecided": "⚠️"}


def junit(gate: Gate) -> bytes:
    """The gate as JUnit's XML: worse is a failure; undecided is skipped, as there is neither success nor failure."""
    count = {verdict: str(sum(case.verdict == verdict for case in gate.cases)) for verdict in SYMBOLS}
    totals = {"tests": str(len(gate.cases)), "failures": count["worse"], "errors": "0", "skipped": count["undecided"]}
    root = ElementTree.Element("testsuites", {"name": "steelyard gate", **totals})
    name = _xml(f"{gate.study}: {gate.b} against {gate.a}")
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **totals})
    properties = ElementTree.SubElement(suite, "properties")
    for key, text in (
        ("verdict", gate.verdict),
        ("margin_percent", f"{gate.margin_percent:g}"),
        ("confidence", f"{gate.confidence:g}"),
        ("comparisons", str(len(gate.cases))),
        *(("look", text) for text in gate.looks),
        *(("limit", text) for text in gate.limits),
        *(("warning", text) for text in gate.warnings),
        *(("remark", text) for text in gate.remarks),
    ):
        ElementTree.SubElement(properties, "property", name=key, value=_xml(text))
    for case in gate.cases:
        _test_case(suite, gate, case)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _test_case(suite: ElementTree.Element, gate: Gate, case: GateCase) -> None:
    name = _xml(f"{case.name}: {case.response}")
    element = ElementTree.SubElement(suite, "testcase", classname=_xml(gate.study), name=name, time="0")
    if case.verdict == "worse":
        failure = ElementTree.SubElement(element, "failure", type="worse", message=_xml(case.sentence))
        failure.text = _xml("\n".join(_details(gate, case)))
        return
    if case.verdict == "undecided":
        ElementTree.SubElement(element, "skipped", message=_xml(case.sentence))
    ElementTree.SubElement(element, "system-out").text = _xml("\n".join((case.sentence, *_details(gate, case))))


def _details(gate: Gate, case: GateCase) -> list[str]:
    """The numbers of a case, a line each."""
    lines = [f"margin: {margin_words(case.response, gate.margin_percent)}"]
    changes = [("interval", case.change_percent)]
    if len(gate.cases) > 1:
        changes.append(("simultaneous interval", case.simultaneous_percent))
    for name, change in changes:
        if change is not None:
            lines.append(f"change, {confidence_text(change.confidence)} {name}: {_change(change, case.response)}")
    if case.mean_a is not None and case.mean_b is not None:
        a, b = quantities([case.mean_a.value, case.mean_b.value], case.unit)
        lines.append(f"geometric means: {a} -> {b}, starts: {case.starts_a} / {case.starts_b}")
    lines.append(f"noise floor: {_floor(case)}")
    if case.advice:
        lines.append(f"blocks that would decide: {case.advice}")
    return lines


def _xml(text: str) -> str:
    return shown_text.visible(NO_XML.sub("\N{REPLACEMENT CHARACTER}", text), lines=True)


def markdown(gate: Gate) -> str:
    """The gate as one section of Markdown."""
    lines = [
        f"## {SYMBOLS[gate.verdict]} {_cell(gate.study)}: {gate.verdict}",
        "",
        f"{_cell(gate.sentence)}.",
        "",
        *(part for text in gate.looks for part in (f"{_cell(capital(text))}.", "")),
        "| cell | response | baseline | now | change | margin | noise floor | verdict |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for case in gate.cases:
        verdict = f"{SYMBOLS[case.verdict]} {case.verdict}" + (f"; {case.advice}" if case.advice else "")
        cells = (
            case.name, label_of(case.response), *_means(case), _change(shown_change(case), case.response),
            margin_words(case.response, gate.margin_percent), _floor(case), verdict,
        )  # fmt: skip
        lines.append(f"| {' | '.join(_cell(text) for text in cells)} |")
    lines += ["", *(f"* {_cell(case.sentence)}" for case in gate.cases if case.verdict != "not worse")]
    lines += [f"* **Warning:** {_cell(text)}" for text in gate.warnings]
    lines += [f"* **Limit of this answer:** {_cell(text)}" for text in gate.limits]
    lines += [f"* {_cell(text)}" for text in (*gate.remarks, *gate.noise_floor)]
    return "\n".join(lines).rstrip() + f"\n\n<sub>{_cell(footer(gate))}</sub>\n"


def shown_change(case: GateCase) -> Estimate | None:
    """The change with the interval that its verdict rests on."""
    return case.simultaneous_percent if case.verdict == "worse" else case.change_percent


def footer(gate: Gate) -> str:
    """Explanation of the brackets."""
    family = len(gate.cases)
    both = "" if family == 1 else f" (of worse cases: simultaneous over {family} comparisons)"
    return (
        f"Brackets: {confidence_text(gate.confidence)} intervals over starts{both}. Values are geometric means of "
        "start means. Worse: the whole interval lies beyond the margin; not worse: it does not reach beyond it."
    )


def _cell(text: str) -> str:
    return shown_text.markdown(text)


def _means(case: GateCase) -> tuple[str, str]:
    if case.mean_a is None or case.mean_b is None:
        return "-", "-"
    a, b = quantities([case.mean_a.value, case.mean_b.value], case.unit)
    return a, b


def _change(change: Estimate | None, response: str) -> str:
    """`+3.1% [1.2, 5.0]`."""
    if change is None:
        return "-"
    ends = {name: None if end is None else 1 + end / 100 for name, end in (("low", change.low), ("high", change.high))}
    return change_text(change.model_copy(update={"value": 1 + change.value / 100, **ends}), response)


def _floor(case: GateCase) -> str:
    return "unknown" if case.floor_percent is None else f"{number(case.floor_percent.value, digits=2)}%"


def write_junit(gate: Gate, path: Path) -> None:
    """Write the JUnit file, whole or not at all. Raises OSError."""
    write_output(path, junit(gate))


def write_markdown(gate: Gate, path: Path) -> None:
    """Write the summary whole, or append it where the file is GitHub's summary of this step. Raises OSError."""
    summary = os.environ.get(SUMMARY_VARIABLE)
    before = ""
    if summary and Path(summary).resolve() == path.resolve() and path.is_file():
        before = path.read_text(encoding="utf-8", errors="replace")
    write_output(path, before + ("\n" if before else "") + markdown(gate))
