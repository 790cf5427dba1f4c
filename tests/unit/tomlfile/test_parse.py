"""What a user's file may be: a byte order mark is nothing, and what no study needs is refused at once, with its
line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from steelyard.cli.commands.check import check
from steelyard.model.errors import StudyError
from steelyard.model.plausible import read_json
from steelyard.study import read
from steelyard.tomlfile.parse import LARGEST_BYTES, parsed, text_of
from steelyard.workload import of_file
from tests.unit.cli.screen import printed
from tests.unit.small_study import SMALL_STUDY

AT_ONCE_S = 5.0
"""Of CPU: a name of 100,000 characters took more than 10 s."""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(SMALL_STUDY)
    return path


def refusal(path: Path) -> str:
    """Message of the refusal of a study, which takes no time."""
    began_s = time.process_time()
    with pytest.raises(StudyError) as caught:
        read(path)
    assert time.process_time() - began_s < AT_ONCE_S
    assert len(caught.value.message) < 1000, "a message is for people"
    return caught.value.message


def test_a_byte_order_mark_is_nothing(study: Path) -> None:
    plain = read(study)
    study.write_bytes(b"\xef\xbb\xbf" + SMALL_STUDY.replace("\n", "\r\n").encode())
    assert read(study) == plain
    assert printed(lambda: check(study)).code == 0
    assert parsed("\ufeffa = 1", "") == {"a": 1}


def test_what_is_not_utf8_has_its_line(study: Path, tmp_path: Path) -> None:
    study.write_bytes(SMALL_STUDY.replace("refused", "gr\xf6\xdfer").encode("latin-1"))
    assert refusal(study) == f"{study}:3: not UTF-8 text: byte 0xf6 at column 23"
    with pytest.raises(StudyError, match="not UTF-8 text"):
        of_file(study)


@pytest.mark.parametrize("value", ["5", "true", "1e9", '"os"', "{a = 1}"])
def test_probes_of_another_shape(value: str, study: Path) -> None:
    study.write_text(f"probes = {value}\n{SMALL_STUDY}")
    message = refusal(study)
    assert message.startswith(f"{study}:1: probes")
    assert "must be a list" in message


@pytest.mark.parametrize(
    "line",
    [
        f"x = {'[' * 3000}{']' * 3000}",
        f"x = {'[' * 3000}",
        "x = " + "{a = " * 3000 + "1" + "}" * 3000,
        f"x.{'a.' * 3000}b = 1",
        f"[x.{'a.' * 3000}b]",
    ],
    ids=["closed lists", "open lists", "tables", "dotted", "header"],
)
def test_deep_nesting(line: str, study: Path) -> None:
    study.write_text(f"{SMALL_STUDY}{line}\n")
    message = refusal(study)
    assert message.startswith(f"{study}:17: ")
    assert "within each other" in message


@pytest.mark.parametrize("before", ["", "# a comment\n\n"], ids=["first line", "third line"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ]", "not TOML: column 5: Invalid value"),
        ("= 1", "not TOML: column 1: Invalid statement"),
        ("a = ", "not TOML: Invalid value"),
        (f"a = {'9' * 5000}", "not TOML: Exceeds the limit"),
        (f"a = {'[' * 40}", "more than 30 lists and tables"),
        (f"a = {{b{'.b' * 40} = 1}}", "a.b.b.b"),
        (f"{'a' * 300} = 1", "aaaaaaaaaa"),
        (f"a = [1, '{'x' * 30_000}']", "a.1: a text of 30,000 characters"),
    ],
)
def test_a_problem_has_its_line_also_the_first(before: str, mark: str, text: str, message: str) -> None:
    line = before.count("\n") + 1
    with pytest.raises(StudyError) as caught:
        parsed(f"{mark}{before}{text}", "file.toml")
    assert caught.value.message.startswith(f"file.toml:{line}: {message}")
    assert caught.value.line == line


def test_what_is_not_utf8_on_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(b"\xf6 = 1")
    with pytest.raises(StudyError, match=r"file\.toml:1: not UTF-8 text: byte 0xf6 at column 1"):
        text_of(path, "study file")


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
def test_a_key_on_the_first_line_that_is_none_is_placed_there(mark: str, study: Path) -> None:
    study.write_text(f"{mark}foo = 1\n{SMALL_STUDY}", encoding="utf-8")
    assert refusal(study).startswith(f"{study}:1: foo = 1: no such key")


def test_brackets_in_texts_and_comments_nest_nothing() -> None:
    brackets = "[" * 100
    text = f"a = \"{brackets}\\\"{brackets}\" # {brackets}\nb = '{brackets}'\nc = '''{brackets}\n'{brackets}'''\n"
    text += f'd = """{brackets}"" {brackets}\\""""\n'
    assert list(parsed(text, "")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('name = "ycsb-a"', f'name = "{"x" * 100_000}"', 9),
        ('name = "ycsb-a"', f'name = "{"x" * 15_000}"', 9),
        ('name = "ycsb-a"', f'name = "{"x" * 15_000}.toml"', 9),
        ('name = "ycsb-a"', f'name = "{"x" * 300}/a.py"', 9),
        ('name = "local"', f'name = "{"x" * 100_000}"', 5),
        ('name = "small"', f'name = "{"x" * 10_000}"', 2),
        ("records = 10", f"{'r' * 100_000} = 10", 10),
        ("records = 10", f"records = {'9' * 100_000}", 10),
        ("nodes = [1, 2]", f'nodes = ["{"x" * 100_000}"]', 16),
    ],
)
def test_huge_names(old: str, new: str, line: int, study: Path) -> None:
    study.write_text(SMALL_STUDY.replace(old, new, 1))
    assert refusal(study).startswith(f"{study}:{line}: ")


def test_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    path.write_bytes(b"#" * (LARGEST_BYTES + 1))
    assert refusal(path) == f"{path}: larger than the 1 MiB that a study file may have"


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.toml", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(StudyError, match="cannot be read"):
            text_of(path, "study file")


def test_treatments_of_another_shape_with_a_scale(study: Path) -> None:
    study.write_text(SMALL_STUDY.replace("starts = 2", "starts = 2\ntreatments = 5"))
    with pytest.raises(StudyError, match="must be a list"):
        read(study, scale=0.5)


@pytest.mark.parametrize("number", ["170141183460469231731687303715884105728", "-1e19", "1e-60", "inf", "nan"])
def test_a_number_that_no_record_can_hold_is_refused_at_its_line(number: str) -> None:
    """Also for a plug-in that would take it: its trials would be measured, not counted, and measured again."""
    text = f'[system]\nname = "mine.py"\nlimits = [\n  {{ most = 1 }},\n  {{ most = {number} }},\n]\n'
    with pytest.raises(StudyError, match=r"^a\.toml:\d: system\.limits\.1\.most = .*must be a finite number") as caught:
        parsed(text, "a.toml")
    assert caught.value.line in (3, 5)


def test_numbers_up_to_the_bounds_are_read_back_from_a_record() -> None:
    tree = parsed(f"a = {2**63 - 1}\nb = -9.2e18\nc = 1e-50\nd = 0.0\ne = true\n", "a.toml")
    assert read_json(json.dumps(tree)) == tree
