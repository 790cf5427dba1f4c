"""The shipped tables: every file has its entry, every number its source, every digit as transcribed."""

from __future__ import annotations

import csv
import hashlib
from importlib.resources import files

import pytest
from pydantic import ValidationError

from steelyard.reference.tables import UnknownReference, named, tables

DATA = files("steelyard.reference").joinpath("data")


def test_every_file_is_described_and_every_description_has_a_file() -> None:
    shipped = {entry.name.removesuffix(".csv") for entry in DATA.iterdir() if entry.name.endswith(".csv")}
    assert set(tables()) == shipped
    assert len(shipped) == 10


TRANSCRIBED = {
    "abramova2014_runtime": "9e0aa223fd4188db", "bare_metal_docker": "01a56e869b08ce43",
    "ec2_cpu_utilization": "f8adf6d4e5f16d79", "ec2_effect_size": "b5387e32abdc10d7", "ec2_latency": "96e9243c6aa2ff80",
    "http_server": "62d690b487a14556", "regression": "1817d4a0a747c110", "spark_job_time": "047cb5079fa7ae8d",
    "speedup": "c2c4c85523e64b0d", "trial_time_summary": "2a5eb1811f764838",
}  # fmt: skip
"""SHA-256 of the files as they were compared with the transcription, byte by byte."""


def test_no_digit_has_changed_since_the_transcription() -> None:
    for name, digest in TRANSCRIBED.items():
        assert hashlib.sha256(DATA.joinpath(f"{name}.csv").read_bytes()).hexdigest().startswith(digest), name
    assert set(TRANSCRIBED) == set(tables())


@pytest.mark.parametrize("name", sorted(tables()))
def test_digits_are_as_transcribed(name: str) -> None:
    table = tables()[name]
    with_heading = list(csv.DictReader(DATA.joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines()))
    assert len(with_heading) == len(table.rows)
    for line, (fields, row) in enumerate(zip(with_heading, table.rows, strict=True), start=2):
        assert row.line == line
        assert {**row.key, **{column: printed.text for column, printed in row.numbers.items()}} == fields
        for printed in row.numbers.values():
            if printed.text not in ("", "nan", "inf"):
                assert printed.low is not None
                assert printed.high is not None
                assert printed.low <= float(printed.text) <= printed.high


@pytest.mark.parametrize("name", sorted(tables()))
def test_every_table_says_where_it_comes_from(name: str) -> None:
    table = tables()[name]
    assert table.source.authors
    assert 2010 < table.source.year < 2030
    assert all((table.title, table.printed_in, table.unit, table.row, table.caveats))
    assert str(table.source.year) in table.source.words()


def test_long_tables_stand_side_by_side() -> None:
    table = tables()["trial_time_summary"]
    assert len(table.rows) == 1017
    cells = table.wide()
    assert len(cells) == 113
    assert list(cells[0].numbers) == ["count", "mean", "std", "min", "25%", "50%", "75%", "max", "range"]
    assert sum(len(cell.numbers) for cell in cells) == 1017
    assert tables()["ec2_latency"].wide() == tables()["ec2_latency"].rows


def test_names() -> None:
    assert [table.name for table in named("hajji2016")] == ["spark_job_time", "http_server"]
    assert len(named("all")) == 10
    with pytest.raises(UnknownReference, match="neither a shipped table") as caught:
        named("speedups")
    assert "did you mean 'speedup'" in caught.value.hint


def test_values_are_frozen() -> None:
    with pytest.raises(ValidationError):
        tables()["speedup"].source.year = 1999  # type: ignore[misc]
