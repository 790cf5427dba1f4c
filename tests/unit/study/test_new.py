"""First study files: each is accepted by `check`, leads editors to the schema, and replaces nothing."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from steelyard.model.errors import StudyError
from steelyard.plan.check import weigh
from steelyard.study import new, read

KINDS = [(question, system) for question in new.QUESTIONS for system in new.SYSTEMS]


def test_every_template_is_offered() -> None:
    files = {(path.stem, path.parent.name) for path in new.FOLDER.glob("*/*")}
    assert files == set(KINDS)
    assert [new.about(question, "simulated") for question in new.QUESTIONS] == [*map(new.about, new.QUESTIONS)]
    assert all(len(new.about(question)) < 65 for question in new.QUESTIONS), "fits a terminal beside its number"


@pytest.mark.parametrize(("question", "system"), KINDS)
def test_a_first_study_is_accepted_and_explained(question: str, system: str, tmp_path: Path) -> None:
    written = new.write("mine", question, system, tmp_path)
    text = written.path.read_text(encoding="utf-8")
    assert (written.path.name, text.splitlines()[0]) == ("mine.toml", "#:schema ./study.schema.json")
    assert "$" not in text
    assert max(map(len, text.splitlines())) < 100
    assert 30 <= len(text.splitlines()) <= 50
    checked = weigh(written.path, tmp_path / "store", 1.0)
    assert (checked.study.study.name, checked.study.system.name, checked.refusals, checked.missing) == (
        "mine", system, (), (),
    )  # fmt: skip
    assert checked.cost is not None
    assert checked.study.design.starts >= 3, "an interval is over starts"
    jsonschema.validate(tomllib.loads(text), json.loads(written.schema.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("question", "system"), KINDS)
def test_the_next_commands_are_those_of_its_comments(question: str, system: str, tmp_path: Path) -> None:
    commands = new.write("mine", question, system, tmp_path).commands
    lines = [" ".join(command.partition("  #")[0].partition("   ")[0].split()) for command in commands]
    assert lines[:3] == ["steelyard check mine.toml", "steelyard run mine.toml", "steelyard report store/mine"]
    further = {"gate": ["steelyard gate store/mine"], "repeat": ["steelyard compare store/mine richardson2017"]}
    assert lines[3:] == further.get(question, [])


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("schema/study.schema.json", "./schema/study.schema.json"),
        ("../schema/study.schema.json", "../schema/study.schema.json"),
    ],
)
def test_a_schema_that_is_there_is_used(place: str, line: str, tmp_path: Path) -> None:
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / place).parent.mkdir()
    (folder / place).write_text("theirs")
    written = new.write("mine", "scale", "simulated", folder)
    assert written.path.read_text(encoding="utf-8").splitlines()[0] == f"#:schema {line}"
    assert (written.schema.read_text(), (folder / "study.schema.json").exists()) == ("theirs", False)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("precious")
    (tmp_path / "link.toml").symlink_to("elsewhere.toml")
    for name in ("mine", "mine.toml", "link"):
        with pytest.raises(StudyError, match="exists, and is left as it is"):
            new.write(name, "scale", "cassandra", tmp_path)
    assert (tmp_path / "mine.toml").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.toml", "mine.toml"]


@pytest.mark.parametrize(
    ("name", "question", "system", "message"),
    [
        ("../mine", "scale", "cassandra", "NAME = '../mine': must be a name and not a path"),
        ("/etc/mine.toml", "scale", "cassandra", "NAME = '/etc/mine': must be a name and not a path"),
        ("My study", "scale", "cassandra", "name = 'My study': must be lower-case letters, digits, '_', '.' and '-', "
         "64 at most; try 'my-study'"),
        ("", "scale", "cassandra", "name = '': must be lower-case letters"),
        ("mine", "serch", "cassandra", "--question = 'serch': no such question; did you mean 'search'? allowed: scale"),
        ("mine", "scale", "casandra", "--system = 'casandra': there is no first study of this system; did you mean "
         "'cassandra'?"),
        ("mine", "../../x", "cassandra", "no such question"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(name: str, question: str, system: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=re.escape(message)):
        new.write(name, question, system, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_suffix_is_no_part_of_the_name(tmp_path: Path) -> None:
    assert read(new.write("mine.toml", "compare", "simulated", tmp_path).path).study.name == "mine"


def test_the_tutorial_extends_a_first_study(tmp_path: Path) -> None:
    """As it says: with other factors at the end of the file."""
    page = (Path(__file__).parents[3] / "docs" / "tutorial" / "first-study.md").read_text(encoding="utf-8")
    assert "steelyard new compression --question compare" in page
    factors = page.partition("```toml\n")[2].partition("```")[0]
    study = new.write("compression", "compare", "cassandra", tmp_path).path
    study.write_text(study.read_text(encoding="utf-8").partition("[factors]")[0] + factors, encoding="utf-8")
    assert len(weigh(study, tmp_path / "store", 1.0).treatments) == 6
