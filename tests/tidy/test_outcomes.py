"""Outcomes: the names and which of them are errors, the same in Rust, in Python and in the reference."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.model.outcome import ANSWERED, Outcome, is_error

ROOT = Path(__file__).resolve().parents[2]
WIRE = ROOT / "docs" / "reference" / "wire.md"


def rust() -> str:
    """The file of the crates that says what an operation can come to."""
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "crates").glob("*/src/**/*.rs"))]
    (found,) = [text for text in sources if re.search(r"\benum Outcome \{", text) and "fn is_error(" in text]
    return found


def test_rust_has_the_same_names_and_errors() -> None:
    text = rust()
    body = text[text.index("impl Outcome {") :]
    names = dict(re.findall(r'Self::(\w+) => "([a-z-]+)"', body[: body.index("fn is_error(")]))
    assert set(names.values()) == {str(outcome) for outcome in Outcome}
    answered = re.search(r"!matches!\(self, ([^)]*)\)", body[body.index("fn is_error(") :])
    assert answered is not None
    assert {names[variant] for variant in re.findall(r"Self::(\w+)", answered[1])} == set(ANSWERED)


def test_the_reference_says_the_same() -> None:
    table = WIRE.read_text(encoding="utf-8").split("| `outcome` | error | meaning |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]*`) \| ([a-z]*) ?\|", table, re.MULTILINE)
    said = {name: error == "yes" for names, error in rows for name in re.findall(r"`([a-z-]+)`", names)}
    assert said == {str(outcome): is_error(outcome) for outcome in Outcome}


def test_an_unknown_kind_is_an_error() -> None:
    assert is_error("a-kind-of-next-year")
    assert not any(is_error(outcome) for outcome in ANSWERED)
