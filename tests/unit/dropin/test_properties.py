"""Property files as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.dropin import properties
from steelyard.model.errors import StudyError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb = 2\nc:3\nd : 4\ne 5\nf\t=\t6", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6"}),
        ("# comment\n  ! another\n\n   a=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("hosts=n1,\\\n    n2,\\\n    n3\nb=1", {"hosts": "n1,n2,n3", "b": "1"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=x\\\n# no comment here", {"a": "x# no comment here"}),
        ("a\\=b=c\\:d", {"a=b": "c:d"}),
        ("a\\ b c d", {"a b": "c d"}),
        ("a=\\u00e9\\t\\n\\q", {"a": "\u00e9\t\nq"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a = b = c", {"a": "b = c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1 ", {"a": "1 "}),
        ("a=end\\", {"a": "end"}),
        ("=value", {"": "value"}),
    ],
)
def test_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert properties.parse(text) == found


def test_a_broken_escape_is_told_with_its_line() -> None:
    with pytest.raises(StudyError, match=r"w:2: a \\u without four") as caught:
        properties.parse("a=1\nb=\\u12", "w")
    assert caught.value.line == 2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"gone: cannot be read: No such file"):
        properties.read(tmp_path / "gone")


def test_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(b"a=\xe9")
    assert properties.read(path) == {"a": "\u00e9"}


@pytest.mark.parametrize("text", ["workload=a\nhosts=b", "# a comment\nworkload=a"])
def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path, text: str) -> None:
    path = tmp_path / "marked.properties"
    path.write_text(text, encoding="utf-8-sig")
    assert properties.read(path)["workload"] == "a"
    path.write_text(text, encoding="utf-16")
    with pytest.raises(StudyError, match="UTF-16") as refused:
        properties.read(path)
    assert "UTF-8" in refused.value.hint
