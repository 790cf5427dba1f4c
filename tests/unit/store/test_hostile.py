"""Stores of somebody else in small: `run` and readers follow no link, unpack no bomb, count no odd value. In full:
`python -m tools.campaigns hostile_stores`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tools.campaigns import hostile_contents, hostile_tables
from tools.campaigns.hostile_kinds import every
from tools.campaigns.hostile_place import Place, resealed

from steelyard.cli.commands.report import report
from steelyard.cli.commands.verify import verify
from steelyard.events.kept import SessionInterrupted
from steelyard.model.errors import StoreError
from steelyard.plan import expand
from steelyard.plan.estimate import estimate
from steelyard.reading import read
from steelyard.store import Store, StoreWriter, layout
from steelyard.store.modelled import open_store
from steelyard.store.parquet_size import size_of
from steelyard.store.tables import MOST_ROWS, problem_in
from steelyard.verify.store import verification
from tests.unit.cli.screen import printed
from tests.unit.verify import made


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "store" / sound.name))


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the victim, outside of the store."""
    folder = tmp_path / "precious"
    (folder / ".draft.partial").mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    (folder / ".mine.tmp").write_text("mine")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", [layout.TRIALS, layout.SET_ASIDE, "itself"])
def test_a_writer_does_not_go_through_a_folder_that_is_a_link(name: str, store: Path, precious: Path) -> None:
    (store / layout.TRIALS / "no trial").mkdir()
    place = store if name == "itself" else store / name
    if place.exists():
        place.rename(place.with_name("moved"))
    place.symlink_to(precious)
    before = names(precious)
    with pytest.raises(StoreError, match="symbolic link") as refused:
        StoreWriter(store.parent, store.name)
    assert "a store from elsewhere?" in refused.value.hint
    assert names(precious) == before


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("name", [layout.EVENTS, layout.LOCK, layout.STUDY_JSON, layout.PLAN])
def test_a_writer_does_not_write_into_a_file_of_another_name(
    name: str, make: Callable[[Path, Path], None], store: Path, precious: Path
) -> None:
    (store / name).unlink()
    make(store / name, precious / "mine.txt")
    with pytest.raises(StoreError, match=f"{name}: a (symbolic|hard) link"):
        StoreWriter(store.parent, store.name)
    assert (precious / "mine.txt").read_text() == "mine"


def test_a_writer_removes_links_that_have_the_name_of_a_draft_and_not_what_they_lead_to(
    store: Path, precious: Path
) -> None:
    (store / layout.TRIALS / ".x.partial").symlink_to(precious)
    (store / ".study.json.1.tmp").symlink_to(precious / "mine.txt")
    (store / ".folder.tmp").mkdir()
    before = names(precious)
    with StoreWriter(store.parent, store.name) as writer:
        writer.event(SessionInterrupted())
    assert names(precious) == before
    assert not [name for name in names(store) if name.endswith((".partial", ".tmp"))]


def test_linked_facts_and_tables_reach_no_reader(store: Path, precious: Path) -> None:
    trial = min((store / layout.TRIALS).iterdir())
    (precious / "n9.json").write_text('{"cpu_model": "of the victim"}')
    for name in (layout.FACTS, layout.INTERVALS):
        shutil.move(trial / name, precious / name)
        (trial / name).symlink_to(precious / name)
    resealed(store)
    opened = Store(store)
    record = next(one for one in opened.trials() if one.id == trial.name)
    assert opened.facts(record) == {}
    assert opened.intervals(record).is_empty()
    assert {damage.what for damage in opened.damages} >= {
        "a symbolic link, which is not followed below a folder of results"
    }
    assert not verification(open_store(store)).sound


def test_the_only_study_of_a_folder_is_not_reached_by_a_link(store: Path, tmp_path: Path) -> None:
    (tmp_path / "received").mkdir()
    (tmp_path / "received" / "study").symlink_to(store)
    with pytest.raises(StoreError, match="not a study's folder"):
        open_store(tmp_path / "received")
    assert read(tmp_path / "received" / "study").results.trials == 6


def test_a_page_replaces_a_link_and_a_pipe_is_no_report(store: Path, precious: Path) -> None:
    (store / "report.html").symlink_to(precious / "mine.txt")
    printed(lambda: report(store))
    assert (precious / "mine.txt").read_text() == "mine"
    assert (store / "report.html").read_text().startswith("<!doctype html>")
    (store / "report.html").unlink()
    os.mkfifo(store / "report.html")
    assert "not a regular file" in printed(lambda: verify(store)).out


def test_a_table_that_becomes_a_link_after_it_was_judged_is_not_read(store: Path, precious: Path) -> None:
    opened = Store(store)
    record = opened.trials()[0]
    assert not opened.intervals(record).is_empty()
    for path in (opened.folder_of(record) / layout.INTERVALS).iterdir():
        shutil.move(path, precious / path.name)
        path.symlink_to(precious / path.name)
    with pytest.raises(OSError, match="symbolic link"):
        opened.intervals(record)


BOMBS = ("300 million rows of one value", "a footer that understates", "pages that are no pages", "negative counts")
WORDS = (
    "300,000,000 rows, and at most",
    "other numbers of rows",
    "cannot be read",
    "with a number that is not a measurement",
)


@pytest.mark.parametrize(("name", "words"), list(zip(BOMBS, WORDS, strict=True)))
def test_a_table_is_judged_before_it_is_unpacked(name: str, words: str, store: Path) -> None:
    path = min(store.glob(f"{layout.TRIALS}/*/{layout.INTERVALS}/*.parquet"))
    hostile_tables.KINDS[name](path)
    resealed(store)
    problem, odd = problem_in(path, store, layout.INTERVALS)
    assert odd or words in problem
    opened = Store(store)
    assert all(opened.intervals(record).height < MOST_ROWS for record in opened.trials())
    assert [words in damage.what for damage in opened.damages] == [True]
    assert words in printed(lambda: verify(store)).out


@pytest.mark.parametrize("rows", [0, 1, 1000, 300_000])
@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_the_size_of_a_table_is_read_from_its_headers(rows: int, compression: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"t_s": [0.5] * rows, "metric": [None, "b"] * (rows // 2) + ["c"] * (rows % 2)})
    frame.write_parquet(path, compression=compression)  # type: ignore[arg-type]
    with path.open("rb") as file:
        assert size_of(file.fileno()).rows == rows


@pytest.mark.parametrize("part", ["system", "site", "workload"])
def test_a_stored_trial_chooses_no_program(part: str, store: Path, tmp_path: Path) -> None:
    place = Place(store, min((store / layout.TRIALS).iterdir()), tmp_path)
    hostile_contents.programs()[f"a {part} as ./evil.py"](place)
    resealed(store)
    trials = Store(store).trials()
    assert any(record.settings.at(f"{part}.name") == str(store / "evil.py") for record in trials)
    study = made.study()
    assert estimate(expand(study), study, trials).trials == 6
    assert not (tmp_path / "executed").exists()


def test_half_of_a_character_is_no_text(store: Path) -> None:
    facts = min(store.glob(f"{layout.TRIALS}/*/{layout.FACTS}/n1.json"))
    facts.write_text('{"cpu_model": "\\uD800 MHz", "cores": "\\ud83d\\ude00"}')
    resealed(store)
    assert "half of a character" in words_of_facts(store)
    facts.write_text('{"cpu_model": "\\uD83D\\ude00"}')
    resealed(store)
    assert words_of_facts(store) == ""


def words_of_facts(store: Path) -> str:
    """What is wrong with facts."""
    opened = Store(store)
    for record in opened.trials():
        opened.facts(record)
    return "".join(damage.what for damage in opened.damages)


def test_times_that_no_calendar_has_are_named(store: Path) -> None:
    path = min(store.glob(f"{layout.TRIALS}/*/{layout.TRIAL_JSON}"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "begun_s": 9e11}))
    resealed(store)
    told = printed(lambda: report(store))
    assert told.code == 1
    assert f"{path.relative_to(store)}: the record cannot be read: begun_s" in told.err


def test_a_record_that_is_larger_than_any_is_named(store: Path) -> None:
    trial = min((store / layout.TRIALS).iterdir())
    os.truncate(trial / layout.TRIAL_JSON, 10 << 30)
    assert "such a file may have at most 8,388,608" in printed(lambda: verify(store)).out
    assert len(Store(store).trials()) == 5


def test_kinds_are_many_and_each_changes_a_sound_store(sound: Path, tmp_path: Path) -> None:
    kinds = every()
    assert len(kinds) >= 60
    for number, kind in enumerate(kinds[::9]):
        store = Path(shutil.copytree(sound, tmp_path / str(number) / sound.name))
        outside = tmp_path / str(number) / "outside"
        (outside / "precious").mkdir(parents=True)
        (outside / "victim.json").write_text("{}")
        before = seen(tmp_path / str(number))
        trial = min((store / layout.TRIALS).iterdir())
        for name in ("samples", "logs"):
            (trial / name / "n1").mkdir(parents=True, exist_ok=True)
        kind.act(Place(store, trial, outside))
        assert seen(tmp_path / str(number)) != before, kind.name


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    return {name: (os.lstat(folder / name).st_size, os.lstat(folder / name).st_mode) for name in names(folder)}
