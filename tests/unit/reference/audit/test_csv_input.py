"""Files of people: every way to be wrong is named with line and column; every usual way to be right is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.reference.audit import csv_file, csv_input
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import Rounding


def read(folder: Path, text: str | bytes) -> list[csv_input.Entry]:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return csv_input.read(path, Rounding())[2]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("size,mean,sd\n1,1.2,abc\n", 2, "sd", "'abc' is not a number"),
        ('size,mean\n1,"1,234"\n', 2, "mean", "'1,234' is not a number"),
        ("size,mean,sd\n1,1.2\n", 2, "", "2 fields where the heading has 3"),
        ("# heading below\nsize,colour\n1,red\n", 2, "", "no column is a statistic: size, colour"),
        ("size;colour\n1;2\n", 1, "", "no column is a statistic: size, colour"),
        ("size,mean,sd\n1,1,2,0,1\n", 2, "", "5 fields where the heading has 3"),
        ("size,mean,average\n1,1.2,3\n", 1, "average", "the same statistic as column 'mean'"),
        ("mean,mean\n1,2\n", 1, "mean", "is given more than once"),
        ("size,mean\n1,1.2\n1,1.3\n", 3, "", "the same cell as in line 2: size 1"),
        ("n,sd\n-3,2\n", 2, "n", "-3 is below 0"),
        ("size,statistic,value\n1,mean,1.2\n1,mean,1.3\n", 3, "statistic", "'mean' a second time for size 1"),
        ("size,statistic,value\n1,meen,1.2\n", 2, "statistic", "'meen' is not a statistic"),
        ("size,statistic,value_ms\n1,mean,x\n", 2, "value_ms", "'x' is not a number"),
        ('size,mean\n"1,2\n', 2, "", "unexpected end of data"),
        ("size,mean\n", 0, "", "a heading and at least one row"),
        ("", 0, "", "a heading and at least one row"),
        (b"\xff\xfe", 0, "", "byte 0 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str | bytes, line: int, column: str, words: str) -> None:
    with pytest.raises(csv_file.TableError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert (error.line, error.key) == (line, column)
    assert words in error.message
    assert str(tmp_path / "t.csv") + (f":{line}:" if line else "") in error.message


def test_hints(tmp_path: Path) -> None:
    for text, hint in (
        ("size,maen\n1,2\n", "did you mean 'mean'?"),
        ("size,mean,sd\n1,1,2,0,1\n", "Decimal commas need semicolons"),
        ('size,mean\n1,"1,234"\n', "a decimal comma or a thousands separator"),
        ("size,statistic,value\n1,meen,1.2\n", "did you mean 'mean'?"),
    ):
        with pytest.raises(csv_file.TableError) as caught:
            read(tmp_path, text)
        assert hint in caught.value.hint
    with pytest.raises(csv_file.TableError, match="No such file"):
        csv_input.read(tmp_path / "absent.csv", Rounding())


def test_wide_and_long_names(tmp_path: Path) -> None:
    (wide,) = read(tmp_path, "\ufeff# ours\n\nSize, N ,STD,25%,p50,75%,mean_before\n6,21,1.5,1,2,3,\n")
    assert wide.key == {"Size": "6"}
    assert [f"{one.heading.statistic}{one.heading.side}" for one in wide.numbers] == [
        "count", "sd", "q1", "median", "q3", "mean_before"
    ]  # fmt: skip
    assert wide.numbers[2].label == "25%"
    assert wide.numbers[-1].printed.interval is None
    (long,) = read(tmp_path, "size,statistic,value_ms\n6,count,21\n6,50%,2\n")
    assert (long.line, long.key) == (2, {"size": "6"})
    assert [(one.label, one.heading.statistic) for one in long.numbers] == [("count", "count"), ("50%", "median")]


def test_what_columns_were_taken_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size,std,standard variation\n1,2,3\n")
    found = csv_input.audit(path, Conventions(), Rounding())
    assert found.columns == {"size": csv_input.CELL, "standard variation": csv_input.NOT_UNDERSTOOD, "std": "sd"}
    assert "column 'standard variation': its heading is not understood" in found.left_out


def test_a_consistency_level_all_is_no_overall_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("consistency,n,mean,sd\nONE,10,5.0,1.0\nQUORUM,10,6.0,1.0\nALL,10,9.0,1.0\n")
    assert "pooled mean" not in csv_input.audit(path, Conventions(), Rounding()).made
    path.write_text("consistency,n,mean,sd\nONE,10,5.0,1.0\nQUORUM,10,6.0,1.0\nOverall,20,9.0,1.0\n")
    found = csv_input.audit(path, Conventions(), Rounding())
    assert "pooled mean" in [one.kind for one in found.findings]
    path.write_text("consistency,n,mean,sd\nONE,10,5.0,1.0\nQUORUM,10,6.0,1.0\nOverall,99,9.0,1.0\n")
    found = csv_input.audit(path, Conventions(), Rounding())
    assert found.findings == ()
    assert "an overall row that pools more than the cells of the file" in found.left_out


def test_a_shipped_file_as_if_it_were_ones_own() -> None:
    from steelyard.reference import tables

    path = Path(tables.__file__).parent / "data" / "trial_time_summary.csv"
    how = Conventions(quartiles="linear", design_count=21)
    found = csv_input.audit(path, how, Rounding(kind="significant", digits=2))
    assert [(one.kind, one.line) for one in found.findings] == [("count", 518), ("count", 521), ("two groups", 702)]


def test_medians_are_compared_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("mean_1,mean_2,median_1,median_2,ratio\n10.0,20.0,10.0,15.0,1.50\n")
    assert csv_input.audit(path, Conventions(), Rounding()).findings == ()
    path.write_text("mean_1,mean_2,median_1,median_2,ratio\n10.0,20.0,10.0,15.0,1.70\n")
    (finding,) = csv_input.audit(path, Conventions(), Rounding()).findings
    assert "15.0 / 10.0" in finding.because
    path.write_text("mean_1,mean_2,ratio\n0.0,0.0,1.70\n")
    assert "ratio" in csv_input.audit(path, Conventions(), Rounding()).left_out.popitem()[0]


def test_a_number_of_a_long_table_is_named_by_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("load,statistic,value\na,min,1\na,mean,3\na,p95,9\na,p99,8\na,max,10\n")
    (finding,) = csv_input.audit(path, Conventions(), Rounding(kind="significant", digits=2)).findings
    assert (finding.line, finding.printed) == (5, "8")
