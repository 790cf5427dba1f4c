"""Merging stores of one study: nothing lost, nothing counted twice, every conflict named, and nothing written then."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steelyard.events.base import Kept
from steelyard.events.kept import (
    FolderMissed,
    FolderSetAside,
    NoiseFloorSought,
    SealCorrected,
    SessionBegan,
    SessionEnded,
    StudyWritten,
    TrialSealed,
)
from steelyard.model.errors import StoreError
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.plan import expand
from steelyard.reading import read
from steelyard.store import Store, StoreWriter, journal
from steelyard.store.merge import Merged, merge
from steelyard.verify.store import verification
from tests.unit.verify import made

CASES = int(os.environ.get("STEELYARD_MERGES", "30"))
BEGAN_S = 1_790_000_000.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.store(tmp_path_factory.mktemp("whole"))


def trials_of(store: Path) -> list[str]:
    return sorted(path.name for path in (store / "trials").iterdir() if not path.name.startswith("."))


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def part(whole: Path, folder: Path, names: Sequence[str], *, number: int = 0, sealed: Sequence[str] = (),
         boot: str | None = None, began_s: float | None = None) -> Path:  # fmt: skip
    """A laboratory's own store: these trials, and a journal that knows of them, and of `sealed` ones that are gone."""
    shutil.copytree(whole, folder)
    for name in set(trials_of(folder)) - set(names):
        shutil.rmtree(folder / "trials" / name)
    events = [entry.event for entry in Store(whole).journal()]
    written = next(event for event in events if isinstance(event, StudyWritten))
    kept = [one for one in events if isinstance(one, TrialSealed) and one.trial in {*names, *sealed}]
    began_s = BEGAN_S + 1000.0 * number if began_s is None else began_s
    session = SessionBegan(todo=6, total=6, boot=f"boot-{number}" if boot is None else boot)
    lines: list[Kept] = [written, session, *kept, SessionEnded(valid=len(kept), invalid=0, missing=6 - len(kept))]
    told(folder, lines, began_s, anew=True)
    return folder


def told(store: Path, events: Sequence[Kept], began_s: float, *, anew: bool = False) -> None:
    with (store / "events.jsonl").open("w" if anew else "a", encoding="utf-8") as file:
        file.writelines(journal.line(event, began_s + 10.0 * number) for number, event in enumerate(events))


def measured_again(store: Path, name: str, *, attempt: int = 1, **changes: object) -> None:
    """Seal another measurement of a trial, as a laboratory that did not know of the first."""
    record = Store(store).attempt(name)
    shutil.rmtree(store / "trials" / name)
    lines = (store / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (store / "events.jsonl").write_text("".join(line for line in lines if f'"{name}"' not in line), encoding="utf-8")
    with StoreWriter(store.parent, store.name) as writer:
        draft = writer.draft(record.id, attempt)
        draft.facts("n1", {"cores": "2", "cpu_model": "another"})
        told_of = {"begun_s": record.begun_s + 500.0, "attempt": attempt, "checksums": {}, **changes}
        writer.event(made.sealed_line(draft.seal(record.model_copy(update=told_of))))


def damaged_record(trial: Path) -> None:
    path = trial / "trial.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"valid"', '"invalid"'), encoding="utf-8")


def torn_record(trial: Path) -> None:
    os.truncate(trial / "trial.json", 200)


def changed_table(trial: Path) -> None:
    path = trial / "intervals" / "l1.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def missing_facts(trial: Path) -> None:
    (trial / "facts" / "n1.json").unlink()


def link_as_facts(trial: Path) -> None:
    path = trial / "facts" / "n1.json"
    path.rename(trial.parents[1] / "elsewhere.json")
    path.symlink_to(trial.parents[1] / "elsewhere.json")


def emptied(trial: Path) -> None:
    shutil.rmtree(trial)
    trial.mkdir()


HARMS: Sequence[Callable[[Path], None]] = (
    damaged_record, torn_record, changed_table, missing_facts, link_as_facts, emptied
)  # fmt: skip


@dataclass
class Case:
    stores: list[Path] = field(default_factory=list)
    sound: set[str] = field(default_factory=set)
    """Trials that a store has whole."""
    harmed: set[tuple[Path, str]] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Trials that a journal knows and no store has."""
    conflicts: set[str] = field(default_factory=set)
    """Trials that were measured more than once, and boots of sessions at the same time."""


def made_case(whole: Path, root: Path, rng: random.Random) -> Case:
    """Split, duplicate and damage a store."""
    case, names, number_of_stores = Case(), trials_of(whole), rng.choice([2, 2, 3])
    numbers = range(number_of_stores)
    holders = {name: set(rng.sample(numbers, rng.choice([1, 1, 2]))) for name in names}
    lost = {name for name in names if rng.random() < 0.08}
    overlap = rng.random() < 0.15
    harms: list[tuple[Callable[[Path], None], Path]] = []
    for number in numbers:
        own = [name for name in names if number in holders[name] and name not in lost]
        gone = [name for name in names if name in lost and number in holders[name] and rng.random() < 0.7]
        boot, began_s = ("boot-0", BEGAN_S + 1.0) if overlap and number == 1 else (None, None)
        store = root / f"laboratory-{number}"
        case.stores.append(part(whole, store, own, number=number, sealed=gone, boot=boot, began_s=began_s))
        case.gone |= set(gone)
        harmed = {name for name in own if rng.random() < 0.15}
        harms += [(rng.choice(HARMS), store / "trials" / name) for name in harmed]
        case.harmed |= {(store, name) for name in harmed}
        case.sound |= set(own) - harmed
        if rng.random() < 0.1:
            with (store / "events.jsonl").open("a") as file:
                file.write('{"t_s": 17, "ev')
    for name in names:
        pair = sorted(number for number in holders[name] if name not in lost)
        if len(pair) > 1 and rng.random() < 0.15 and not any(harmed == name for _, harmed in case.harmed):
            measured_again(case.stores[pair[1]], name)
            case.conflicts.add(name)
    # A laboratory that measures sets aside what is damaged, so the harm comes last.
    for harm, trial in harms:
        harm(trial)
    if overlap:
        case.conflicts.add("boot boot-0")
    return case


@pytest.mark.parametrize("seed", range(CASES))
def test_of_stores_split_duplicated_and_damaged_at_random_nothing_is_lost_or_counted_twice(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    case = made_case(whole, tmp_path, random.Random(seed))
    before = [digests(store) for store in case.stores]
    target = tmp_path / "merged" / "made"
    merged = merge(case.stores, target)
    assert [digests(store) for store in case.stores] == before
    assert len(merged.conflicts) == len(case.conflicts)
    for what in case.conflicts:
        assert any(what in line for line in merged.conflicts)
    named = {(Path(damage.file.partition("/trials/")[0]), trial_in(damage.file)) for damage in merged.damages}
    assert case.harmed <= named
    if case.conflicts:
        assert not target.exists()
        return
    assert trials_of(target) == sorted(case.sound)
    for name in case.sound:
        assert digests(target / "trials" / name) == digests(whole / "trials" / name)
    assert set(merged.lost) == ({name for _, name in case.harmed} | case.gone) - case.sound
    assert sum(merged.attempts.values()) == len(case.sound) == len(Store(target).trials())
    refuse_differences(target, case.gone)
    again = merge([*case.stores, target], target)
    assert (again.conflicts, trials_of(target)) == ([], sorted(case.sound))
    refuse_differences(target, case.gone)
    assert not list(target.parent.glob(".*"))


def trial_in(file: str) -> str:
    return file.partition("/trials/")[2].partition("/")[0]


def refuse_differences(store: Path, gone: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Only trials that the journal knows and no store has may be missing."""
    differences = [one for one in verification(Store(store)).findings if one.weight == "difference"]
    assert [one for one in differences if not any(name in one.words() for name in gone)] == []
    assert Store(store).measured_again == ()


def two(whole: Path, root: Path) -> tuple[Path, Path]:
    names = trials_of(whole)
    return part(whole, root / "a", names[:4]), part(whole, root / "b", names[3:], number=1)


def test_a_merged_store_reads_as_the_whole_and_goes_on(whole: Path, tmp_path: Path) -> None:
    names = trials_of(whole)
    a, b = part(whole, tmp_path / "a", names[:3]), part(whole, tmp_path / "b", names[2:5], number=1)
    merged = merge([a, b], tmp_path / "c" / "made")
    assert (merged.attempts, merged.twice, merged.lost) == ({a: 3, b: 2}, 1, [])
    with StoreWriter(tmp_path / "c", "made") as writer:
        assert writer.damages == ()
        writer.intend(made.study(), made.STUDY, expand(made.study()))
    merge([whole], merged.folder)
    refuse_differences(merged.folder)
    assert Store(merged.folder).trials() == Store(whole).trials()
    of_both = [read(store).results.answer for store in (merged.folder, whole)]
    assert of_both[0] == of_both[1]


def test_sessions_stay_together_and_say_machine_and_time(whole: Path, tmp_path: Path) -> None:
    names = trials_of(whole)
    a = part(whole, tmp_path / "a", names[:3], boot="one")
    b = part(whole, tmp_path / "b", names[3:], boot="two", began_s=BEGAN_S + 5.0)
    merged = merge([b, a], tmp_path / "c")
    assert (merged.conflicts, merged.notes) == ([], [])
    boots: dict[str, list[str]] = {}
    for entry in Store(merged.folder).journal():
        match entry.event:
            case SessionBegan(boot=boot):
                boots[boot] = []
            case TrialSealed(trial=trial):
                boots[boot].append(trial)
    assert {boot: sorted(trials) for boot, trials in boots.items()} == {"one": names[:3], "two": names[3:]}
    assert list(boots) == ["one", "two"]


def test_sessions_at_one_time_without_a_machine_are_noted(whole: Path, tmp_path: Path) -> None:
    names = trials_of(whole)
    a = part(whole, tmp_path / "a", names[:3], boot="")
    b = part(whole, tmp_path / "b", names[3:], began_s=BEGAN_S + 5.0)
    assert "do not say on which machines" in merge([a, b], tmp_path / "c").notes[0]


def test_a_trial_with_valid_attempts_in_two_stores_is_a_conflict(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    name = trials_of(whole)[3]
    measured_again(b, name, attempt=2)
    conflict = merge([a, b], tmp_path / "c").conflicts
    assert len(conflict) == 1
    assert str(a / "trials" / name) in conflict[0]
    assert str(b / "trials" / f"{name}.2") in conflict[0]


def test_attempts_of_one_store_are_kept_together(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    name = trials_of(whole)[0]
    spoilt = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.LAB_FAULT, detail="a cable"),))
    measured_again(a, name, verdict=spoilt)
    shutil.copytree(a / "trials" / name, tmp_path / "first")
    measured_again(a, name, attempt=2)
    shutil.move(tmp_path / "first", a / "trials" / name)
    merged = merge([a, b], tmp_path / "c")
    assert merged.conflicts == []
    assert {record.key for record in Store(merged.folder).trials()} > {(name, 1), (name, 2)}
    refuse_differences(merged.folder)


@pytest.mark.parametrize("name", ["study.toml", "plan.jsonl"])
def test_other_studies_are_refused_with_both_checksums(whole: Path, tmp_path: Path, name: str) -> None:
    text = made.STUDY.replace("seed = 3", "seed = 4")
    other = made.store(tmp_path / "other", text=text)
    if name == "plan.jsonl":
        for file in ("study.toml", "study.json"):
            shutil.copy(whole / file, other / file)
        written = StudyWritten(sha256={file: digests(other)[file] for file in ("study.toml", "study.json")})
        told(other, [written], BEGAN_S)
    with pytest.raises(StoreError, match="different forms of study") as caught:
        merge([whole, other], tmp_path / "c")
    assert {digests(store)[name] in caught.value.message for store in (whole, other)} == {True}
    assert not (tmp_path / "c").exists()


def test_a_store_that_is_being_written_is_refused(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    with StoreWriter(tmp_path, "b"), pytest.raises(StoreError, match="another process is writing"):
        merge([a, b], tmp_path / "c")
    with StoreWriter(tmp_path, "b"), pytest.raises(StoreError, match="another process is writing"):
        merge([a], b)


def test_only_an_empty_folder_or_a_store_is_merged_into(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "note.txt").write_text("mine")
    with pytest.raises(StoreError, match="neither empty"):
        merge([a, b], tmp_path / "c")
    with pytest.raises(StoreError, match="nothing to merge"):
        merge([a], a)
    (tmp_path / "c" / "note.txt").unlink()
    assert merge([a, b], tmp_path / "c").damages == []


def test_what_a_store_lost_comes_from_another_and_was_not_measured_again(whole: Path, tmp_path: Path) -> None:
    names = trials_of(whole)
    a, b = part(whole, tmp_path / "a", names[1:], sealed=names), part(whole, tmp_path / "b", names, number=1)
    told(
        a, [FolderMissed(folder=names[0]), FolderSetAside(folder=names[1], to=f"set-aside/{names[1]}", why="torn")], 1e9
    )
    (a / "trials" / names[1]).rename(a / "moved")
    merged = merge([a, b], tmp_path / "c")
    assert [damage.effect for damage in merged.damages] == [f"taken from {b}"]
    assert trials_of(merged.folder) == names
    refuse_differences(merged.folder)


def test_damage_in_the_store_merged_into_is_set_aside_and_replaced(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    names = trials_of(whole)
    merged = merge([a, b], tmp_path / "c")
    changed_table(merged.folder / "trials" / names[0])
    torn_record(merged.folder / "trials" / names[1])
    missing_facts(merged.folder / "trials" / names[5])
    missing_facts(b / "trials" / names[5])
    again = merge([a, b], merged.folder)
    assert again.lost == [names[5]]
    assert trials_of(merged.folder) == names[:5]
    assert sorted(path.name for path in (merged.folder / "set-aside").iterdir()) == [names[0], names[1], names[5]]
    refuse_differences(merged.folder)


def test_a_changed_line_is_corrected_with_the_number_that_it_has_now(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    path = b / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    own = next(number for number, line in enumerate(lines) if trials_of(whole)[5] in line)
    lines[own] = lines[own].replace('"outcome": "valid"', '"outcome": "invalid"')
    path.write_text("".join(lines))
    merged = merge([a, b], tmp_path / "c")
    lines = (merged.folder / "events.jsonl").read_text().splitlines()
    found = [entry.event for entry in Store(merged.folder).journal() if isinstance(entry.event, SealCorrected)]
    assert len(found) == 1
    assert '"outcome": "invalid"' in lines[found[0].line - 1]
    refuse_differences(merged.folder)


def test_a_noise_floor_is_kept_if_it_is_that_of_every_store(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    for store, text in ((a, "{}"), (b, "{ }")):
        (store / "noise-floor.json").write_text(text)
        told(store, [NoiseFloorSought(found=True, sha256=hashlib.sha256(text.encode()).hexdigest())], BEGAN_S)
    merged = merge([a, b], tmp_path / "c")
    assert not (merged.folder / "noise-floor.json").exists()
    assert "noise floor" in merged.notes[0]
    refuse_differences(merged.folder)
    assert (merge([a], tmp_path / "d").folder / "noise-floor.json").read_text() == "{}"
    refuse_differences(tmp_path / "d")


@pytest.mark.parametrize("name", ["../../../victim", "{}/victim", "facts/../../victim", "facts/\0"])
def test_a_record_that_names_files_elsewhere_is_damaged(whole: Path, tmp_path: Path, name: str) -> None:
    a, b = two(whole, tmp_path)
    trial = a / "trials" / trials_of(a)[0]
    named = name.format(trial.resolve())
    for victim in (tmp_path / "victim", trial / "victim", trial.parent / "victim"):
        victim.write_text("secret")
    record = json.loads((trial / "trial.json").read_text())
    record["checksums"][named] = hashlib.sha256(b"secret").hexdigest()
    (trial / "trial.json").write_text(json.dumps(record, indent=1))
    lines = (a / "events.jsonl").read_text().splitlines(keepends=True)
    (a / "events.jsonl").write_text("".join(line for line in lines if trial.name not in line))
    merged = merge([a, b], tmp_path / "c")
    assert merged.lost == [trial.name]
    assert trial.name not in trials_of(merged.folder)


def test_a_link_in_the_place_of_a_folder_or_lock_is_not_followed(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    name = trials_of(a)[0]
    (a / "trials" / name).rename(tmp_path / "elsewhere")
    (a / "trials" / name).symlink_to(tmp_path / "elsewhere")
    assert merge([a, b], tmp_path / "c").lost == [name]
    (b / ".lock").unlink()
    (b / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="symbolic link"):
        merge([a, b], tmp_path / "d")
    assert not (tmp_path / "victim").exists()


def test_a_full_disk_leaves_no_half_of_a_store(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            merge([a, b], tmp_path / "c")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_files_that_no_record_knows_are_named(whole: Path, tmp_path: Path) -> None:
    a, b = two(whole, tmp_path)
    name = trials_of(a)[0]
    (a / "trials" / name / "logs" / "note.txt").write_text("mine")
    merged: Merged = merge([a, b], tmp_path / "c")
    assert [damage.file for damage in merged.damages] == [f"{a}/trials/{name}/logs/note.txt"]
    refuse_differences(merged.folder)
