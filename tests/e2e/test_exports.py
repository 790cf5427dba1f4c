"""What `steelyard export` writes, read by the tools that it is for: HdrHistogram's log reader, Apache Otava, and every
snippet of docs/howto/load-exports.md."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from steelyard.cli.commands.export import export
from steelyard.export import otava as otava_history
from steelyard.model import percentiles
from steelyard.node import java
from steelyard.node.folders import cache_folder
from steelyard.reading.within_trials import added_up, answered
from steelyard.store.read import Store
from tests.unit.cli.screen import printed
from tests.unit.export import stores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "load-exports.md"
OTAVA = "apache-otava==0.8.0"
INSTALL_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as after the page's first snippet: the store `quickstart`, and its exports."""
    here = tmp_path_factory.mktemp("exports")
    (here / "store").mkdir()
    stores.write(here / "store").rename(here / "store" / "quickstart")
    exported = printed(
        lambda: export(
            here / "store" / "quickstart", hdr=here / "logs", openmetrics=here / "load.om", otava=here / "history",
            parquet=here / "trials.parquet", markdown=here / "page.md",
        )
    )  # fmt: skip
    assert exported.code == 0
    return here


def snippets(language: str) -> list[str]:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    return blocks


def run(argv: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        argv, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.cassandra
def test_the_log_reader_of_the_library_reads_the_logs(folder: Path) -> None:
    """The library is the one that Maven fetched with Cassandra."""
    jar = next(cache_folder().glob("cassandra-[0-9]*/lib/HdrHistogram-*.jar"))
    virtual_machine = next(path for path in java.candidates() if path.is_file())
    log = next((folder / "logs").glob("*.load1.hdr"))
    reader = [str(virtual_machine), "-cp", str(jar), "org.HdrHistogram.HistogramLogProcessor", "-i", str(log)]
    tags = run([*reader, "-listtags"], folder).split()
    assert {"response", "service", "read-response", "update-service"} <= set(tags)
    lines = run([*reader, "-tag", "response", "-csv", "-outputValueUnitRatio", "1"], folder).splitlines()
    rows = [row for row in csv.reader(lines) if row and re.match(r"[0-9.]+$", row[0])]
    assert rows, lines
    by_share = {float(share): float(value) for value, share, *_ in rows}
    store = Store(folder / "store" / "quickstart")
    record = next(record for record in store.trials() if log.name.startswith(f"{record.id}.load1"))
    buckets = added_up(answered(store, [record])).select("bucket_low_ns", "bucket_high_ns", "count").rows()
    for share in (0.5, 1.0):
        bucket = percentiles.quantile_bucket(buckets, share)
        assert bucket is not None
        assert bucket[0] <= by_share[share] <= bucket[1] + 1


@pytest.fixture(scope="module")
def otava() -> list[str]:
    """Apache Otava, installed once per machine beside the cache's downloads: it pins another numpy than ours."""
    folder = cache_folder() / OTAVA.replace("==", "-")
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "otava.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            draft = folder.with_suffix(".partial")
            shutil.rmtree(draft, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run(
                [*pip, "--target", str(draft), OTAVA], capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S,
                check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip(f"this network gives no {OTAVA}: {done.stderr.strip().splitlines()[-1:]}")
            draft.rename(folder)
    # Before our own packages on the path, numpy of Otava's choice.
    return [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(folder)!r}); from otava.main import main; main()",
    ]


def test_otava_reads_the_history(folder: Path, otava: list[str]) -> None:
    history = folder / "history"
    tests = run([*otava, "list-tests", "--config-file", "otava.yaml"], history).split()
    assert tests == ["known.workload-A-1-node", "known.workload-A-3-nodes"]
    (snippet,) = (text for text in snippets("sh") if "otava" in text and "steelyard" not in text)
    lines = [line.replace("quickstart.1-node", tests[0]) for line in snippet.splitlines()]
    assert lines.pop(0) == f"cd {history.name}"
    for line in lines:
        command, *words = line.split()
        assert command == "otava"
        assert "INVALID" not in run([*otava, *words], history, PYTHONUNBUFFERED="1")


def test_otava_finds_a_planted_change(folder: Path, otava: list[str], tmp_path: Path) -> None:
    first = Store(folder / "store" / "quickstart").trials()[0]
    slower_from = 20
    records = [
        first.model_copy(
            update={
                "id": f"{first.id[:12]}-s1-t{place}",
                "begun_s": first.begun_s + 60 * place,
                "responses": first.responses.model_copy(
                    update={"execution_time_ms": (130.0 if place >= slower_from else 100.0) + place % 3}
                ),
            }
        )
        for place in range(2 * slower_from)
    ]
    otava_history.write(records, tmp_path)
    (test,) = (path.stem for path in tmp_path.glob("*.csv"))
    words = ["analyze", "--config-file", "otava.yaml", test, "--output", "json", "--since", "2020-01-01"]
    changes = json.loads(run([*otava, *words], tmp_path))[test]
    (change,) = changes
    assert [one["metric"] for one in change["changes"]] == [f"{test}.execution_time_ms"]
    assert change["time"] == round(records[slower_from].begun_s)


def test_the_first_snippet_is_a_command_of_ours(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = (text for text in snippets("sh") if text.startswith("steelyard"))
    (tmp_path / "store").symlink_to(folder / "store")
    run([sys.executable, "-m", *line.split()], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in folder.iterdir()}


def test_duckdb_runs_the_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    cells, settings, samples = (duckdb.sql(query) for query in snippets("sql"))
    rows = cells.fetchall()
    assert [(nodes, starts) for nodes, starts, *_ in rows] == [(1, 4), (3, 4)]
    of_one = [
        float(record.responses.execution_time_ms or 0)
        for record in Store(folder / "store" / "quickstart").trials()
        if record.treatment["nodes"] == 1 and record.verdict.outcome == "valid"
    ]
    assert rows[0][2] == pytest.approx(sum(of_one) / len(of_one))
    assert len(settings.fetchall()) == stores.TRIALS
    assert duckdb.sql(snippets("sql")[1]).fetchall()[0][1:3] == ("cassandra", "A")
    assert {metric: mean for metric, mean, _ in samples.fetchall()} == {
        "machine_cpu_idle_fraction": 0.25,
        "node_cpu_user_cores": 0.5,
    }


def test_pandas_and_the_histogram_library_run_the_snippets(folder: Path) -> None:
    cells, merged = (run([sys.executable, "-c", code], folder) for code in snippets("python"))
    assert [line.split()[0] for line in cells.splitlines()] == ["mean", "nodes", "1", "3"]
    # 8 trials of 2 load nodes, 3 s of 200 answered operations.
    assert merged.startswith("9600 operations, p99 5.0")


def test_promtool_takes_the_openmetrics(folder: Path, tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("this machine has no promtool")
    (line,) = (text for text in snippets("sh") if text.startswith("promtool"))
    shutil.copy(folder / "load.om", tmp_path)
    run(line.split(), tmp_path)
    assert any((tmp_path / "prometheus-data").iterdir())


def test_r_runs_the_snippet(folder: Path) -> None:
    if shutil.which("Rscript") is None or subprocess.run(["Rscript", "-e", "library(arrow)"], check=False).returncode:
        pytest.skip("this machine has no R with the package arrow")
    assert "execution_time_ms" in run(["Rscript", "-e", *snippets("r")], folder)
