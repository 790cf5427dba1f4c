"""The bytes that the agent's encoding is held against are what the client library makes."""

from __future__ import annotations

import importlib.util
import json

from tests.unit.workload.reference import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "cql"


def test_the_fixture_is_what_the_library_gives() -> None:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert json.loads((FOLDER / "values.json").read_text())["cases"] == generate.table()
