"""Damaged stores: what is wrong is named and passed over, counted never twice, set aside by the next writer, and a
repaired store verifies. The campaign `python -m tools.campaigns damage` does the same in many more ways."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from steelyard.cli.commands.compare import compare
from steelyard.cli.commands.report import report
from steelyard.cli.commands.status import status
from steelyard.cli.commands.verify import EXIT_DIFFERENCE, EXIT_SOUND, verify
from steelyard.events.kept import FolderMissed, NoiseFloorSought
from steelyard.judging.noise_floor import KeptFloor
from steelyard.model.errors import OtherFormatError, StoreError
from steelyard.plan import expand
from steelyard.reading import read
from steelyard.serve.store_cache import Watched
from steelyard.store import Store, StoreWriter
from steelyard.verify.store import verification
from tests.unit.cli.screen import Printed, printed
from tests.unit.verify import made

TRIALS = 6


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "made"))


def first(store: Path) -> Path:
    return min((store / "trials").iterdir())


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def commands(store: Path) -> dict[str, Printed]:
    """Every command that reads a store. Without a page: to draw one takes longer than everything else."""
    return {
        "verify": printed(lambda: verify(store)),
        "status": printed(lambda: status(store)),
        "report": printed(lambda: report(store, as_json=True)),
    }


def named_by(store: Path, file: str) -> set[str]:
    return {name for name, told in commands(store).items() if file in told.out + told.err}


def again(folder: Path) -> None:
    """Measure what is missing, as the laboratory does it."""
    asked = made.study()
    plan = expand(asked)
    with StoreWriter(folder.parent, "made") as writer:
        writer.intend(asked, made.STUDY, plan)
        there = {record.id: record for record in Store(folder).trials()}
        a_record = next(iter(there.values()))
        for planned in (trial for trial in plan.trials if trial.id not in there):
            intervals, _ = made.engine_records(planned.seed % 1000, 1.0)
            draft = writer.draft(planned.id, 1)
            draft.intervals("l1", intervals)
            taken = {**planned.model_dump(exclude={"start"}), "planned_start": planned.start, "start": planned.start}
            given = {**a_record.model_dump(), **taken, "checksums": {}, "covariates": {}}
            writer.event(made.sealed_line(draft.seal(type(a_record).model_validate(given))))


@pytest.mark.parametrize("harm", [half, lambda path: os.truncate(path, 0), Path.unlink], ids=["half", "0", "deleted"])
def test_damaged_intervals_are_named_by_verify_and_report_and_left_out(store: Path, harm: Callable) -> None:
    file = f"trials/{first(store).name}/intervals/l1.parquet"
    harm(store / file)
    told = commands(store)
    assert told["verify"].code == EXIT_DIFFERENCE
    assert file in told["verify"].out
    assert told["report"].code == 1
    assert f"damaged: {file}: " in told["report"].err
    reading = read(store)
    assert len(reading.records) == TRIALS
    assert len(set(reading.courses["trial_id"])) == TRIALS - 1
    assert [damage.file for damage in reading.damages] == [file]


def test_a_page_of_a_damaged_store_says_so_and_is_verified_all_the_same(store: Path) -> None:
    report(store)
    assert "The store is damaged" not in (store / "report.html").read_text()
    file = f"trials/{first(store).name}/intervals/l1.parquet"
    half(store / file)
    told = printed(lambda: verify(store))
    assert told.code == EXIT_DIFFERENCE
    assert f"{file}: the table cannot be read" in told.out
    assert printed(lambda: report(store)).code == 1
    page = (store / "report.html").read_text()
    assert "The store is damaged" in page
    assert "1 file of the store is not as written" in page
    assert file in page
    differences = [one for one in verification(Store(store)).findings if one.weight == "difference"]
    assert {one.kind for one in differences} == {"checksum", "format"}


def test_a_folder_of_intervals_that_is_gone_is_named(store: Path) -> None:
    shutil.rmtree(first(store) / "intervals")
    told = printed(lambda: report(store, as_json=True))
    assert f"trials/{first(store).name}/intervals/l1.parquet: it is missing" in told.err
    assert told.code == 1


def test_a_table_that_the_record_does_not_know_is_not_added_up(store: Path) -> None:
    path = first(store) / "intervals" / "l1.parquet"
    shutil.copy(path, path.with_name("l2.parquet"))
    opened = Store(store)
    record = next(one for one in opened.trials() if one.id == first(store).name)
    assert opened.intervals(record)["node"].unique().to_list() == ["l1"]
    assert opened.damages[0].file.endswith("intervals/l2.parquet")


def test_a_table_of_other_columns_is_passed_over_although_its_checksum_is_right(store: Path) -> None:
    path = first(store) / "samples" / "n1.parquet"
    pl.DataFrame({"t_s": [1.0]}).write_parquet(path)
    opened = Store(store)
    record = opened.trials()[0].model_copy(update={"id": first(store).name, "checksums": {}})
    assert opened.samples(record).is_empty()
    assert "lacks columns" in opened.damages[0].what


@pytest.mark.parametrize("text", ['{"cores": "2"', "[]", "[" * 100_000, "\xff"])
def test_damaged_facts_are_passed_over(store: Path, text: str) -> None:
    path = first(store) / "facts" / "n1.json"
    path.write_text(text, encoding="latin-1")
    assert str(path.relative_to(store)) in commands(store)["verify"].out
    opened = Store(store)
    assert all("n1" in opened.facts(record) or record.id == first(store).name for record in opened.trials())
    # A record that knows no checksums, as of a trial that was written by hand.
    record = opened.trials()[0].model_copy(update={"id": first(store).name, "checksums": {}})
    assert Store(store).facts(record) == {}


@pytest.mark.parametrize(
    "harm",
    [
        half,
        Path.unlink,
        lambda path: path.write_bytes(b"\xff\n" + path.read_bytes()),
        lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1])),
        lambda path: path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[-1]),
    ],
    ids=["half", "deleted", "not UTF-8", "a line gone", "a line twice"],
)
def test_a_damaged_plan_is_named_and_made_anew(store: Path, harm: Callable) -> None:
    harm(store / "plan.jsonl")
    assert named_by(store, "plan.jsonl") == {"verify", "status", "report"}
    told = printed(lambda: status(store))
    assert "unknown without the plan; 6 valid in 6 attempts" in told.out
    assert told.code == 1
    again(store)
    assert printed(lambda: status(store)).code == 0
    assert printed(lambda: verify(store)).code == EXIT_SOUND


def test_a_journal_that_is_not_utf8_is_named_and_read(store: Path) -> None:
    with (store / "events.jsonl").open("ab") as handle:
        handle.write(b"\xff\xfe\n")
    assert named_by(store, "events.jsonl") == {"verify", "status", "report"}
    assert {name: told.code for name, told in commands(store).items()} == {"verify": 0, "status": 0, "report": 0}
    assert len(Store(store).journal()) == TRIALS + 1


def test_a_deleted_journal_is_a_difference(store: Path) -> None:
    (store / "events.jsonl").unlink()
    told = commands(store)
    assert {name: one.code for name, one in told.items()} == {"verify": 1, "status": 1, "report": 1}
    assert all("events.jsonl" in one.out + one.err for one in told.values())


def test_a_line_of_the_journal_that_was_edited_is_blamed_on_the_journal(store: Path) -> None:
    path = store / "events.jsonl"
    path.write_text(path.read_text().replace('"outcome": "valid"', '"outcome": "invalid"', 1))
    told = printed(lambda: verify(store))
    assert told.code == EXIT_DIFFERENCE
    assert "events.jsonl: line 2: trial " in told.out


def test_a_copy_of_a_trial_is_not_counted_twice(store: Path) -> None:
    before = json.loads(printed(lambda: status(store, as_json=True)).out)
    copy = f"{first(store).name}.7"
    shutil.copytree(first(store), store / "trials" / copy)
    told = printed(lambda: status(store, as_json=True))
    now = json.loads(told.out)
    assert now["cells"] == before["cells"]
    assert (now["valid"], now["attempts"]) == (TRIALS, TRIALS)
    assert [damage["file"] for damage in now["damages"]] == [f"trials/{copy}"]
    assert f"trials/{copy}: a copy: the record in it is that of {first(store).name}; not counted" in told.err
    assert named_by(store, f"trials/{copy}") == {"verify", "status", "report"}
    assert len(Watched("made", store).read().records) == TRIALS
    again(store)
    assert (store / "set-aside" / copy / "trial.json").is_file()
    assert printed(lambda: verify(store)).code == EXIT_SOUND


def test_a_store_whose_deleted_trial_was_measured_again_verifies(store: Path) -> None:
    folder = first(store)
    shutil.rmtree(folder)
    told = commands(store)
    assert all(f"trials/{folder.name}" in one.out + one.err for one in told.values())
    again(store)
    told_after = printed(lambda: verify(store))
    assert told_after.code == EXIT_SOUND, told_after.out
    missed = [entry.event for entry in Store(store).journal() if isinstance(entry.event, FolderMissed)]
    assert missed == [FolderMissed(folder=folder.name)]


def seal_as_failed(store: Path) -> Path:
    """Say in the journal that the first trial was sealed as a fault of the system."""
    folder, path = first(store), store / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    failed = [
        line.replace('"outcome": "valid", "reasons": []', '"outcome": "invalid", "reasons": ["SYSTEM_FAULT"]')
        if f'"{folder.name}"' in line
        else line
        for line in lines
    ]
    path.write_text("".join(failed))
    return folder


def test_a_failure_that_was_removed_and_measured_again_is_said_by_everybody(store: Path) -> None:
    folder = seal_as_failed(store)
    shutil.rmtree(folder)
    gone = printed(lambda: status(store)).err
    assert "sealed as invalid (the system under test failed), but it is missing" in gone
    again(store)
    story = f"trial {folder.name} was sealed as invalid (the system under test failed), was removed, and was measured"
    told = printed(lambda: verify(store))
    assert told.code == EXIT_SOUND, told.out
    assert f"remark, journal  events.jsonl: a trial that was measured again: {story} again: valid" in told.out
    shown = printed(lambda: status(store))
    assert shown.code == 0
    assert f"{story} again: valid" in " ".join(shown.out.split())
    assert json.loads(printed(lambda: status(store, as_json=True)).out)["measured_again"][0]["outcome"] == "invalid"
    report_of_it = read(store).report_input(courses=False)
    assert [one.sentence.partition(" again")[0] for one in report_of_it.measured_again] == [story]


def edit_seal(store: Path, **change: object) -> str:
    """Change fields in the line of the journal about the first trial. Returns the trial's folder."""
    folder, path = first(store).name, store / "events.jsonl"
    written = [json.loads(line) for line in path.read_text().splitlines()]
    seal = next(line for line in written if line.get("trial") == folder)
    seal |= {name: value(seal[name]) if callable(value) else value for name, value in change.items()}
    path.write_text("".join(json.dumps(line) + "\n" for line in written))
    return folder


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"record_sha256": lambda was: ("0" if was[0] != "0" else "1") + was[1:]}, "1 of the 64 digits"),
        ({"record_sha256": "gone"}, "its SHA-256 is none"),
        ({"attempt": 2}, "it names "),
        ({"trial": "000000000000-s1-t1"}, "it names 000000000000-s1-t1, with the SHA-256 of the record in trials/"),
        ({"outcome": "invalid", "reasons": ["LAG"]}, "it says invalid (lag p99 above the limit), and has the SHA-256"),
    ],
    ids=["a digit", "no SHA-256", "attempt", "trial", "outcome"],
)
def test_an_edited_line_of_the_journal_is_not_blamed_on_its_trial(
    store: Path, change: dict[str, object], why: str
) -> None:
    folder = edit_seal(store, **change)
    told = commands(store)
    assert told["verify"].code == EXIT_DIFFERENCE
    assert (told["status"].code, told["report"].code) == (0, 0)
    for one in told.values():
        assert why in one.out + one.err
        assert "line 2" in one.out + one.err
    assert f"trials/{folder} counts as its record says" in told["status"].err
    assert "the next `steelyard run` corrects it" in told["status"].err
    with StoreWriter(store.parent, "made") as writer:
        assert [damage.file for damage in writer.damages] == ["events.jsonl"]
        assert "corrected now" in writer.damages[0].hint
    assert len(Store(store).trials()) == TRIALS
    assert not (store / "set-aside").exists()
    after = printed(lambda: verify(store))
    assert after.code == EXIT_SOUND, after.out
    assert "line 2 was changed, line 8 corrects it" in after.out
    assert Store(store).measured_again == ()
    with StoreWriter(store.parent, "made") as writer:
        assert writer.damages == ()


def test_a_record_and_a_line_that_contradict_each_other_are_both_named(store: Path) -> None:
    folder = edit_seal(store, record_sha256="ab" * 32)
    told = commands(store)
    for one in told.values():
        assert f"trials/{folder}/trial.json: " in one.out + one.err
        assert "line 2 of events.jsonl was" in one.out + one.err
    assert "restore the changed one of the two from a copy" in told["status"].err
    assert len(Store(store).trials()) == TRIALS - 1
    again(store)
    assert (store / "set-aside" / folder / "trial.json").is_file()
    assert printed(lambda: verify(store)).code == EXIT_SOUND


def test_a_trial_that_was_removed_twice_is_told_twice(store: Path) -> None:
    folder = first(store)
    for _ in range(2):
        shutil.rmtree(folder)
        again(store)
    assert [one.fate for one in Store(store).measured_again] == ["removed", "removed"]


def test_lines_that_stand_in_the_journal_twice_are_no_measurement(store: Path) -> None:
    path = store / "events.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert Store(store).measured_again == ()


def test_a_store_that_lost_all_trials_says_which(store: Path) -> None:
    name = first(store).name
    shutil.rmtree(store / "trials")
    with pytest.raises(StoreError, match=rf"trials/{name}.* and 5 more"):
        printed(lambda: report(store))
    assert f"damaged: trials/{name}" in printed(lambda: status(store)).err


def remove_record(folder: Path) -> None:
    (folder / "trial.json").unlink()


def tear_record(folder: Path) -> None:
    half(folder / "trial.json")


def edit_record(folder: Path) -> None:
    path = folder / "trial.json"
    written = json.loads(path.read_text())
    written["responses"]["execution_time_ms"] *= 2
    path.write_text(json.dumps(written, indent=1))


def file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def pipe_as_record(folder: Path) -> None:
    (folder / "trial.json").unlink()
    os.mkfifo(folder / "trial.json")


@pytest.mark.parametrize("harm", [remove_record, tear_record, edit_record, file_in_its_place, pipe_as_record])
def test_what_is_no_sealed_trial_is_named_set_aside_and_measured_again(store: Path, harm: Callable) -> None:
    folder = first(store)
    harm(folder)
    assert named_by(store, f"trials/{folder.name}") == {"verify", "status", "report"}
    assert len(Store(store).trials()) == TRIALS - 1
    with StoreWriter(store.parent, "made") as writer:
        (damage,) = writer.damages
        assert damage.file.startswith(f"trials/{folder.name}")
        assert damage.effect == f"set aside, kept as set-aside/{folder.name}"
        assert (store / "set-aside" / folder.name).exists()
    again(store)
    told = printed(lambda: verify(store))
    assert told.code == EXIT_SOUND, told.out
    assert f"{folder.name} was set aside as set-aside/{folder.name}" in told.out
    # The same trial once more: nothing that was kept is overwritten.
    remove_record(folder)
    with StoreWriter(store.parent, "made"):
        assert (store / "set-aside" / f"{folder.name}~2").is_dir()


def test_a_trial_of_another_version_is_refused_and_not_set_aside(store: Path) -> None:
    path = first(store) / "trial.json"
    (store / "events.jsonl").write_text("")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(OtherFormatError, match="format 99"):
        Store(store).trials()
    with pytest.raises(OtherFormatError, match="format 99"):
        StoreWriter(store.parent, "made")
    assert path.is_file()


@pytest.mark.parametrize("name", ["study.toml", "study.json", "plan.jsonl"])
def test_an_edited_study_is_noticed(store: Path, name: str) -> None:
    path = store / name
    path.write_text(path.read_text().replace("200", "201"))
    told = commands(store)
    assert told["verify"].code == EXIT_DIFFERENCE
    assert f"{name}: SHA-256" in told["verify"].out
    if name != "study.toml":
        watched = Watched("made", store)
        assert [name in remark for remark in watched.read().remarks] == [True]
        assert [name in remark for remark in watched.read().remarks] == [True]
        assert name in told["status"].err
        assert name in told["report"].err


def test_a_journal_that_has_lost_its_line_about_the_study_is_a_difference(store: Path) -> None:
    path = store / "events.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "study-written" not in line))
    told = printed(lambda: verify(store))
    assert told.code == EXIT_DIFFERENCE
    assert "one that the journal says" in told.out
    assert Store(store).plan is not None


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\xff"])
def test_a_study_that_cannot_be_read_is_refused_with_its_hint(store: Path, text: str) -> None:
    (store / "study.json").write_text(text, encoding="latin-1")
    for command in (status, report):
        with pytest.raises(StoreError, match=r"study\.json") as caught:
            printed(lambda command=command: command(store))
        assert "restore it from a copy" in caught.value.hint
    assert "study.json" in printed(lambda: verify(store)).out


@pytest.mark.parametrize("name", ["plan.jsonl", "events.jsonl", "study.toml", "trials"])
def test_a_writer_refuses_what_stands_in_the_place_of_a_file(store: Path, name: str) -> None:
    path = store / name
    if path.is_dir():
        shutil.rmtree(path)
        path.touch()
    else:
        path.unlink()
        path.mkdir()
    with pytest.raises(StoreError, match=name) as caught:
        StoreWriter(store.parent, "made")
    assert "move it away" in caught.value.hint


def test_an_edited_noise_floor_is_passed_over(store: Path) -> None:
    records = Store(store).trials()
    with StoreWriter(store.parent, "made") as writer:
        held = Store(store).circumstances(records)[0]
        floor = KeptFloor(study="floor", made_s=1.0, pairs=6, holds_for=held, spreads=())
        sha256 = writer.noise_floor(floor)
        writer.event(NoiseFloorSought(found=True, study="floor", made_s=1.0, sha256=sha256))
    opened = Store(store)
    assert opened.noise_floor(records).floor == floor
    assert opened.damages == ()
    path = store / "noise-floor.json"
    for harm in (lambda: path.write_text(path.read_text() + " "), lambda: half(path), path.unlink):
        harm()
        opened = Store(store)
        assert opened.noise_floor(opened.trials()).floor is None
        assert [damage.file for damage in opened.damages] == ["noise-floor.json"]


def test_a_comparison_names_damages_of_both_stores(store: Path) -> None:
    shutil.copytree(first(store), store / "trials" / "copy of it")
    told = printed(lambda: compare(str(store), None, fixed_a=["nodes=1"], fixed_b=["nodes=2"]))
    assert told.err.count("damaged: trials/copy of it") == 1
