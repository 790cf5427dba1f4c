from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from tools.docs import study_file, workload_file
from tools.docs.__main__ import GENERATED, main, out_of_date

from steelyard.study import schema
from tests.unit.study.paper import HEAD

ROOT = Path(__file__).parents[3]
WRITTEN = {"docs/one.md": lambda: "one", "schema/two.json": lambda: "two"}
STUDIES = sorted((ROOT / "studies").glob("*.toml"))


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[name](), "python -m tools.docs --write"


def test_the_page_of_workload_files_says_what_each_key_means() -> None:
    rows = [line for line in workload_file.text().splitlines() if line.startswith("| `")]
    assert rows
    assert [line for line in rows if line.endswith("|  |")] == []


def test_every_key_of_the_reference_page_says_what_it_means() -> None:
    rows = [line for line in study_file.text().splitlines() if line.startswith("| `") and line.count(" | ") >= 3]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


@cache
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
        ("[levels.hardware.vm-1gb]\nnode.memory_mb = 1024\n'system.heap_mb' = 256\nnumber = 1.0\nunit = 'GB'\n", True),
        ("[levels.hardware.vm-1gb]\nnumber = 'one'\n", False),
        ("[levels]\nhardware = 1\n", False),
        ("[design]\nkind = 'listed'\ntreatments = [{ nodes = [1, 3], load.threads = 2 }]\n", True),
        ("[design.control]\nnodes = [1, 3]\n", False),
        ("[node]\nmemory_mb = 1024\ncpus = 1.5\n[link]\nname = 'nodal'\n", True),
        ("[node]\nmemory = 1024\n", False),
        ("thread = 1\n", False),
        ("[client]\nrouting = 'token'\ntls = true\n", True),
        ("[client]\nroute = 'token'\n", False),
        ("[design]\nkind = 'all'\n", False),
    ],
)
def test_the_schema_agrees_with_the_reader(rest: str, good: bool) -> None:
    assert validator().is_valid(json.loads(json.dumps(tomllib.loads(HEAD + rest)))) is good


def test_a_misspelt_setting_of_a_shipped_plug_in_is_refused_by_the_schema() -> None:
    study = tomllib.loads(STUDIES[0].read_text(encoding="utf-8"))
    study["workload"]["record"] = 5
    assert not validator().is_valid(study)


def test_generated_files_are_checked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], tmp_path, WRITTEN) == 1
    said = capsys.readouterr().err
    assert all(f"not up to date: {name}" in said for name in WRITTEN)
    assert list(tmp_path.iterdir()) == []
    assert main(["--write"], tmp_path, WRITTEN) == 0
    assert (main([], tmp_path, WRITTEN), out_of_date(tmp_path, WRITTEN)) == (0, [])
    (tmp_path / next(iter(WRITTEN))).write_text("old")
    assert out_of_date(tmp_path, WRITTEN) == [next(iter(WRITTEN))]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_leads_editors_to_its_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("#:schema ")
    assert (path.parent / first.removeprefix("#:schema ")).resolve() == ROOT / "schema" / "study.schema.json"
