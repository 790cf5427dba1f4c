from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from steelyard.study import reference, schema, workload_reference
from steelyard.study.generated import keep
from tests.unit.study.paper import HEAD

ROOT = Path(__file__).parents[3]
STUDIES = sorted((ROOT / "studies").glob("*.toml"))


def test_the_schema_is_up_to_date() -> None:
    found = (ROOT / "schema" / "study.schema.json").read_text(encoding="utf-8")
    assert found == schema.text(), "python -m steelyard.study.schema schema/study.schema.json --write"


def test_the_reference_page_is_up_to_date() -> None:
    found = (ROOT / "docs" / "reference" / "study-file.md").read_text(encoding="utf-8")
    assert found == reference.text(), "python -m steelyard.study.reference docs/reference/study-file.md --write"


def test_the_page_of_workload_files_is_up_to_date_and_says_what_each_key_means() -> None:
    found = (ROOT / "docs" / "reference" / "workload-file.md").read_text(encoding="utf-8")
    command = "python -m steelyard.study.workload_reference docs/reference/workload-file.md --write"
    assert found == workload_reference.text(), command
    rows = [line for line in found.splitlines() if line.startswith("| `")]
    assert [line for line in rows if line.endswith("|  |")] == []


def test_every_key_of_the_reference_page_says_what_it_means() -> None:
    rows = [line for line in reference.text().splitlines() if line.startswith("| `") and line.count(" | ") >= 3]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    return jsonschema.Draft202012Validator(schema.schema())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_schema_accepts_every_shipped_study(path: Path) -> None:
    assert list(validator().iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("rest", "good"),
    [
        ("", True),
        ("[factors]\nsite.nodes = [1, 3]\n[design.control]\nsite.nodes = 1\n", True),
        ("[factors]\nnodes = 1\n", False),
        ("thread = 1\n", False),
        ("[design]\nkind = 'all'\n", False),
    ],
)
def test_the_schema_agrees_with_the_reader(rest: str, good: bool) -> None:
    assert validator().is_valid(json.loads(json.dumps(tomllib.loads(HEAD + rest)))) is good


def test_a_misspelt_setting_of_a_shipped_plug_in_is_refused_by_the_schema() -> None:
    study = tomllib.loads(STUDIES[0].read_text(encoding="utf-8"))
    study["workload"]["record"] = 5
    assert not validator().is_valid(study)


def test_a_generated_file_is_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    assert keep("new", "", [str(path)]) == 1
    assert "--write" in capsys.readouterr().err
    assert keep("new", "", [str(path), "--write"]) == 0
    assert keep("new", "", [str(path)]) == 0
