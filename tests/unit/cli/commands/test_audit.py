"""`steelyard audit` and `steelyard reference`: what a person reads, what a program reads, and the exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.commands import audit, reference
from steelyard.model.errors import StudyError
from steelyard.reference.audit.finding import column_label
from steelyard.reference.tables import tables
from tests.unit.cli.screen import printed


def audited(name: str, **options: Any) -> tuple[int, str]:
    found = printed(lambda: audit.audit(name, **options), width=100)
    return found.code, found.out


def test_contradictions_are_exit_code_1_and_remarks_are_not() -> None:
    assert audited("srinadhuni2018")[0] == 1
    assert audited("chekkilla2016")[0] == 0
    assert audited("hajji2016")[0] == 0


def test_a_finding_names_table_cell_number_and_what_it_should_be() -> None:
    text = audited("srinadhuni2018")[1]
    for words in (
        "contradiction, effect size ec2_effect_size, line 9: nodes before 5, nodes after 7, replication factor 5",
        "Cohen's d reported 2.34; should be 0.3344 to 1.007; off by 1.328 (132%)",
        "1 contradiction and 0 remarks in 52 checks",
    ):
        assert words in " ".join(text.split())
    assert re.search(r"^effect size +8 +1 +Cohen's d follows", text, re.MULTILINE)


def test_nothing_checked_clears_nothing(tmp_path: Path) -> None:
    assert audited("abramova2014")[0] == 4, "one number a cell"
    path = tmp_path / "t.csv"
    for text in ("op,p99\nread,3\n", "op,mean,sd\na,1,2\n", "op,n,p99\na,,\n", "nodes,throughput\n3,100\n"):
        path.write_text(text)
        code, out = audited(str(path))
        assert (code, "nothing was checked" in out, "0 contradictions" in out) == (4, True, False)
        data = json.loads(audited(str(path), as_json=True)[1])
        assert data["made"] == {}
        assert data["form"] == "wide, separated by commas"


def test_json() -> None:
    code, text = audited("richardson2017", as_json=True)
    data = json.loads(text)
    assert code == 1
    assert data["name"] == "richardson2017"
    assert data["made"]["intercept"] == 70
    assert [one["printed"] for one in data["findings"]] == ["42", "84", "9e+05", "2.8e+02"]
    assert data["findings"][0]["cell"]["ram_gb"] == "1", "programs read the names of the file"


def test_a_file_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hajji2016").write_text("n,mean,min,max\n3,9.00,1.00,2.00\n")
    code, text = audited("hajji2016")
    assert code == 1
    assert "mean 9.00; should be" in text
    assert "read: n as count, mean, min, max" in text


def test_options_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,mean,sd\n21,5.23,1\n")
    assert audited(str(path))[0] == 4, "nothing bounds them: that is no all-clear"
    assert audited(str(path), count=21)[0] == 0
    assert audited(str(path), count=20)[0] == 1
    assert audited(str(path), whole_numbers=True)[0] == 1
    path.write_text("min,max,range\n10,20,11\n")
    assert audited(str(path))[0] == 0
    assert audited(str(path), digits=2)[0] == 0
    assert audited(str(path), digits=3)[0] == 1, "a text with fewer digits than asked has had its zeros dropped"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("hajji2061", {}, "'hajji2061' is neither a file nor a shipped table or study"),
        ("hajji2016", {"digits": 2}, "are for files"),
        ("FILE", {"quartiles": "tukey"}, "--quartiles tukey"),
    ],
)
def test_what_is_asked_wrongly(tmp_path: Path, name: str, options: dict[str, Any], words: str) -> None:
    (tmp_path / "t.csv").write_text("n,mean\n1,1\n")
    with pytest.raises(StudyError, match=words):
        audited(str(tmp_path / "t.csv") if name == "FILE" else name, **options)


def test_people_read_labels_where_a_file_has_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "cluster_size,response,n,mean_before,mean_after,change_percent\n3,execution_time_ms,20,100,120,35\n"
    )
    text = " ".join(audited(str(path))[1].split())
    assert "cluster size 3, response execution time (ms) change (%) 35; should be" in text
    assert "cluster_size as which cell" in text, "the names that were read, to find them in the file"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("joining_s", "joining (s)"),
        ("requests_per_s", "requests per s"),
        ("mean_ms_before", "mean before (ms)"),
        ("std_percent", "standard deviation (%)"),
        ("response_ms_p99", "99th percentile of response time (ms)"),
        ("50%", "50%"),
        ("operations", "operations"),
    ],
)
def test_the_label_of_a_column(name: str, label: str) -> None:
    assert column_label(name) == label


def test_the_list() -> None:
    found = printed(reference.list_all, width=80)
    assert found.code == 0
    assert all(len(line) <= 80 and line == line.rstrip() for line in found.out.splitlines())
    text = " ".join(found.out.split())
    starts = {line.find(f" {table.source.name} ") for table in tables().values() for line in found.out.splitlines()
              if line.startswith(f"{table.name} ")}  # fmt: skip
    assert len(starts) == 1, "columns are aligned"
    for table in tables().values():
        assert f"{table.name} {table.source.name} {len(table.rows):,} {table.title} {table.printed_in}" in text
        assert table.source.words() in text
    data = json.loads(printed(lambda: reference.list_all(as_json=True)).out)
    assert {one["name"]: one["rows"] for one in data} == {name: len(one.rows) for name, one in tables().items()}


def test_a_table_is_shown_whole_however_narrow_the_terminal() -> None:
    found = printed(lambda: reference.show("richardson2017", "43"), width=40)
    assert found.code == 0
    text = found.out
    assert "…" not in text
    assert "all rows   table 43, workload E, platform raspberry-pi-2, ram_gb 1, link 802.11" in text
    assert "6                  21  6.9e+05    9e+05  2.6e+02  2.6e+02  2.8e+02  1.8e+06    2e+06    2e+06" in text
    for caveat in tables()["trial_time_summary"].caveats:
        assert caveat in text
    (data,) = json.loads(printed(lambda: reference.show("speedup", as_json=True)).out)
    assert data["rows"][0]["numbers"]["value"] == {"text": "0.16", "value": 0.16, "low": 0.155, "high": 0.165}
    assert data["source"]["year"] == 2017


def test_a_table_number_that_is_not_there() -> None:
    with pytest.raises(StudyError, match="no table 99") as caught:
        reference.show("speedup", "99")
    assert caught.value.hint == "available: 18, 22, 30, 34, 42, 46, 54, 58"
    with pytest.raises(StudyError, match="no table 1"):
        reference.show("http_server", "1")
