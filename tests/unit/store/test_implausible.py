"""Numbers that no instrument gives: named by file and left out, whichever file of a store holds them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steelyard.cli.commands.report import report
from steelyard.cli.commands.status import status
from steelyard.cli.commands.verify import EXIT_DIFFERENCE, verify
from steelyard.events.kept import SessionInterrupted
from steelyard.model.plausible import LARGEST, number_in, read_json
from steelyard.progress import live_file
from steelyard.reading import read
from steelyard.store import Store, journal
from steelyard.wire import record as wire
from tests.unit.cli.screen import printed
from tests.unit.verify import made

TRIALS = 6
HUGE = (1e308, -1e308, 1e19, 10**400, 2**63, float("nan"), float("inf"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("sound"), samples={1: 0.5, 2: 1.0})


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "made"))


def first(store: Path) -> Path:
    return min((store / "trials").iterdir())


def unseal(store: Path) -> None:
    """As a store from anybody: nothing says what the files were."""
    (store / "events.jsonl").write_text('{"t_s": 5.0, "event": "session-interrupted"}\n', encoding="utf-8")
    for trial in (store / "trials").iterdir():
        path = trial / "trial.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "checksums": {}}), encoding="utf-8")


def put(store: Path, *keys: str, value: object) -> str:
    path = first(store) / "trial.json"
    record = json.loads(path.read_text())
    table = record
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    path.write_text(json.dumps(record), encoding="utf-8")
    return str(path.relative_to(store))


def readers_name(store: Path, file: str, what: str) -> None:
    """Every reader names the file, and none falls over."""
    for command in (lambda: verify(store), lambda: status(store), lambda: report(store, as_json=True)):
        told = printed(command, width=1000)
        assert file in told.out + told.err
        assert told.code != 0
    assert what in told.err


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        *((("responses", "execution_time_ms"), value) for value in HUGE),
        (("responses", "operations"), 2**63), (("begun_s",), 1e308), (("settings", "load", "threads"), 10**400),
    ],
)  # fmt: skip
def test_a_record_with_a_number_that_is_no_measurement_is_named_and_not_counted(
    store: Path, keys: tuple[str, ...], value: float
) -> None:
    unseal(store)
    file = put(store, *keys, value=value)
    readers_name(store, file, f"{'.'.join(keys)} = ")
    assert len(read(store).records) == TRIALS - 1


@pytest.mark.parametrize(
    ("keys", "value"), [(("begun_s",), 1e15), (("begun_s",), -5.0), (("settings", "load", "threads"), 10**9)]
)
def test_times_without_a_date_and_settings_that_no_study_has_are_named(
    store: Path, keys: tuple[str, ...], value: float
) -> None:
    unseal(store)
    readers_name(store, put(store, *keys, value=value), "the record cannot be read")
    assert len(read(store).records) == TRIALS - 1


@pytest.mark.parametrize("value", [float(LARGEST) / 2, -float(LARGEST) / 2, 1e-50, 1e-308])
def test_within_the_bounds_everything_can_be_computed(store: Path, value: float) -> None:
    unseal(store)
    put(store, "responses", "execution_time_ms", value=value)
    assert len(read(store).records) == TRIALS
    assert printed(lambda: report(store, as_json=True)).code == 0
    printed(lambda: verify(store))


def with_row(path: Path, **changes: Any) -> None:
    frame = pl.read_parquet(path)
    first_row = pl.Series(range(len(frame))) == 0
    columns = [pl.when(first_row).then(pl.lit(value, frame[name].dtype)).otherwise(pl.col(name)).alias(name)
               for name, value in changes.items()]  # fmt: skip
    frame.with_columns(columns).write_parquet(path)


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("intervals/l1", {"count": 2**62}), ("intervals/l1", {"count": -1}), ("intervals/l1", {"t_s": 1e308}),
        ("intervals/l1", {"bucket_high_ns": 2**63 - 1}), ("intervals/l1", {"seconds": float("inf")}),
        ("samples/n1", {"value": 1e308}), ("samples/n1", {"value": float("nan")}),
        ("samples/n1", {"t_s": -1e300}),
    ],
)  # fmt: skip
def test_rows_of_tables_are_left_out_and_their_file_is_named(store: Path, part: str, changes: dict[str, Any]) -> None:
    unseal(store)
    path = first(store) / f"{part}.parquet"
    rows = len(pl.read_parquet(path))
    with_row(path, **changes)
    opened = Store(store)
    record = opened.attempt(path.parent.parent.name)
    kept = opened.intervals(record) if part.startswith("intervals") else opened.samples(record)
    assert len(kept.filter(pl.col("node") == path.stem)) == rows - 1
    assert [(one.file, one.effect) for one in opened.damages] == [
        (str(path.relative_to(store)), "these rows are left out")
    ]
    assert printed(lambda: report(store, as_json=True)).code in (0, 1)
    told = printed(lambda: verify(store))
    assert told.code == EXIT_DIFFERENCE
    assert f"{part}.parquet" in told.out


def test_a_meter_that_decays_gives_no_damage(store: Path) -> None:
    unseal(store)
    path = first(store) / "samples" / "n1.parquet"
    with_row(path, value=2.96e-314)
    opened = Store(store)
    assert 0.0 in opened.samples(opened.attempt(path.parent.parent.name))["value"]
    assert opened.damages == ()


@pytest.mark.parametrize(("file", "content"), [("facts/n1.json", '{"cores": 1e308}'), ("links.json", '[{"a": 1e999}]')])
def test_facts_and_links_are_named(store: Path, file: str, content: str) -> None:
    unseal(store)
    path = first(store) / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    opened = Store(store)
    record = opened.attempt(first(store).name)
    assert opened.links(record) == []
    assert ("n1" in opened.facts(record)) == (file == "links.json")
    assert [damage.file.endswith(file) for damage in opened.damages] == [True]


def test_a_fact_states_a_number_or_none() -> None:
    assert number_in("8") == 8.0
    for text in ("", "none", "nan", "1e400", "9" * 5000, "inf"):
        assert number_in(text) is None


def test_the_error_names_the_key_and_quotes_the_number() -> None:
    assert read_json('{"a": [0, -2.5e3, 1e-300]}') == {"a": [0, -2500.0, 0.0]}
    with pytest.raises(ValueError, match=r"^a\.1\.b = 1e308 is not a number of a measurement"):
        read_json('{"a": [0, {"b": 1e308}]}')
    with pytest.raises(ValueError, match=r"^9{40}… is not a number"):
        read_json("9" * 5000)


def test_journal_and_live_file_leave_the_field_out(tmp_path: Path) -> None:
    (entry,) = journal.entries('{"t_s": 1e308, "event": "session-interrupted"}\n')
    assert (entry.t_s, entry.event) == (None, SessionInterrupted())
    readings = {"n1": {"values": {"node_cpu": 1e308}}, "n2": {"t_s": 5.0, "values": {"node_cpu": 0.5}}}
    said = {"format": 1, "t_s": 5.0, "total": 10**400, "nodes": readings}
    (tmp_path / ".live.json").write_text(json.dumps(said), encoding="utf-8")
    live = live_file.read(tmp_path)
    assert live is not None
    assert (live.total, list(live.nodes)) == (0, ["n2"])


@pytest.mark.parametrize("change", [("sent", 10**30), ("t_s", 1e308), ("rows", {"read": 2**63})])
def test_a_record_of_an_engine_is_refused(change: tuple[str, Any], examples: Callable[[str], dict[str, Any]]) -> None:
    fields = {**examples("interval"), change[0]: change[1]}
    with pytest.raises(wire.RecordError, match=f"interval.{change[0]}"):
        wire.parse(json.dumps(fields))


@pytest.fixture
def examples() -> Callable[[str], dict[str, Any]]:
    lines = Path("schema/records.example.jsonl").read_text(encoding="utf-8").splitlines()
    return lambda kind: next(one for line in lines if (one := json.loads(line))["record"] == kind)
