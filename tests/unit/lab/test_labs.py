"""Handing blocks to laboratories: who is refused, and what becomes of a block whose laboratory fails."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard import __version__
from steelyard.lab import labs
from steelyard.lab.labs import Laboratory, Order
from steelyard.lab.session import begin
from steelyard.model.errors import SteelyardError, StudyError
from steelyard.reading.parallel import connected
from steelyard.store import Store
from steelyard.store.merged_journal import OF_THE_STUDY
from tests.unit.verify import made

A, B, C = (f"tcp://10.0.0.{number}:4000" for number in (1, 2, 3))
NOWHERE = "tcp://127.0.0.1:9"
USE = f"connected('{NOWHERE}').__enter__()"
ORDER = Order("made.toml", {}, frozenset(), {}, {}, "run-1")


def laboratory(name: str) -> Laboratory:
    return Laboratory(1.0, __version__, (f"machine-{name}", f"boot-{name}", f"state-{name}"))


@dataclass
class Dask:
    """Its client, with workers of the test: each answers a block at once."""

    workers: dict[str, Laboratory | Exception]
    failing: dict[str, Exception] = field(default_factory=dict)
    """Errors of blocks, each once; after it another process is at the address if it is in `started_again`."""
    started_again: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Workers that go when they get a block: nobody hears of it any more."""
    handed_out: list[tuple[str, int]] = field(default_factory=list)
    answer: Callable[[int], labs.Files] = lambda block: {}

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def run(self, function: Any, workers: Sequence[str], on_error: str) -> dict[str, Any]:
        return {address: self.workers[address] for address in workers} if function is labs.about else {}

    def get_executor(self) -> Dask:
        return self

    def submit(self, function: Any, order: Order, block: int, *, workers: list[str], **options: Any) -> Future[Any]:
        assert (options["retries"], options["pure"], options["allow_other_workers"]) == (0, False, False)
        (address,) = workers
        self.handed_out.append((address, block))
        future: Future[Any] = Future()
        if address in self.gone:
            del self.workers[address]
        elif address in self.failing:
            future.set_exception(self.failing.pop(address))
            if address in self.started_again:
                self.workers[address] = replace(self.workers[address], process="2")  # type: ignore[type-var]
        else:
            future.set_result(self.answer(block))
        return future


def work(dask: Dask, tmp_path: Path, starts: int = 4) -> list[str]:
    """Measure every block of a study; gives what was said. Answers of laboratories are those of a whole store."""
    text = made.STUDY.replace("starts = 3", f"starts = {starts}")
    study, said = tmp_path / "made.toml", []
    study.write_text(text)
    whole = Store(made.store(tmp_path / "whole", text=text))
    with begin(study, tmp_path / "store", here=False) as session:
        dask.answer = lambda block: block_of(whole, block, session.folder)
        blocks = labs._blocks(session)
        labs._Work(dask, "tcp://10.0.0.9:8786", session, ORDER, blocks, said.append, 0.05).run()  # type: ignore[arg-type]
    assert len(Store(tmp_path / "store" / "made").trials()) == len(whole.trials()) == 2 * starts
    return said


def block_of(whole: Store, block: int, study: Path) -> labs.Files:
    """The store of a laboratory that measured this block of a study."""
    records = [record for record in whole.trials() if record.block == block]
    files = {name: (study / name).read_bytes() for name in OF_THE_STUDY}
    for record in records:
        read = labs._read(whole.folder_of(record))
        files |= {f"trials/{record.id}/{name}": content for name, content in read.items()}
    lines = (whole.folder / "events.jsonl").read_text().splitlines(keepends=True)
    sealed = [line for line in lines if any(record.id in line for record in records)]
    written = [line for line in (study / "events.jsonl").read_text().splitlines(keepends=True) if "written" in line]
    return {**files, "events.jsonl": "".join([*written, *sealed]).encode()}


def test_each_laboratory_gets_a_block_at_a_time(tmp_path: Path) -> None:
    reader = replace(laboratory("c"), labs=0.0)
    dask = Dask({A: laboratory("a"), B: laboratory("b"), C: reader})
    work(dask, tmp_path)
    assert dask.handed_out == [(A, 1), (B, 2), (A, 3), (B, 4)]


def test_the_block_of_a_laboratory_that_fails_is_given_to_another(tmp_path: Path) -> None:
    dask = Dask({A: laboratory("a"), B: laboratory("b")}, failing={A: SteelyardError("no memory is left")})
    said = work(dask, tmp_path)
    assert dask.handed_out == [(A, 1), (B, 2), (B, 1), (B, 3), (B, 4)]
    assert any("gave up: no memory is left" in line for line in said)


def test_the_block_of_a_laboratory_that_goes_is_given_to_another(tmp_path: Path) -> None:
    dask = Dask({A: laboratory("a"), B: laboratory("b")}, gone={B})
    said = work(dask, tmp_path)
    assert dask.handed_out == [(A, 1), (B, 2), (A, 2), (A, 3), (A, 4)]
    assert f"laboratory {B} has gone" in said


def test_when_no_laboratory_can_go_on_its_error_is_said(tmp_path: Path) -> None:
    dask = Dask({A: laboratory("a")}, failing={A: SteelyardError("no memory is left", "buy some")})
    with pytest.raises(SteelyardError, match="gave up: no memory is left") as caught:
        work(dask, tmp_path)
    assert caught.value.hint == "buy some"


def test_without_a_laboratory_the_command_that_starts_one_is_said(tmp_path: Path) -> None:
    with pytest.raises(SteelyardError, match="no laboratory has come") as caught:
        work(Dask({}), tmp_path)
    assert "dask worker tcp://10.0.0.9:8786 --resources lab=1" in caught.value.hint


@pytest.mark.parametrize(
    ("other", "starts", "why"),
    [
        *(
            (replace(laboratory("b"), ids=ids), 4, "is on the machine of .*, or has its state")
            for ids in (("machine-a", "b", "b"), ("b", "boot-a", "b"), ("b", "b", "state-a"))
        ),
        (laboratory("b"), 3, "is one too many for 3 blocks: each needs 2"),
        (replace(laboratory("b"), version="0.0.1"), 4, "but 0.0.1"),
        (ModuleNotFoundError("No module named 'steelyard'"), 4, "does not have Steelyard"),
        (replace(laboratory("b"), ids=("", "boot-b", "state-b")), 4, "without an id"),
    ],
    ids=["machine", "boot", "state", "blocks", "version", "none", "no-id"],
)
def test_a_laboratory_that_cannot_be_used_is_named_and_the_others_measure(
    tmp_path: Path, other: Any, starts: int, why: str
) -> None:
    dask = Dask({A: laboratory("a"), B: other})
    said = work(dask, tmp_path, starts)
    assert dask.handed_out == [(A, block) for block in range(1, starts + 1)]
    assert len([line for line in said if re.search(f"{B} .*{why}.*: not used", line)]) == 1


def test_when_none_that_came_can_be_used_it_is_said_why(tmp_path: Path) -> None:
    with pytest.raises(SteelyardError, match="is on a machine without an id") as caught:
        work(Dask({A: replace(laboratory("a"), ids=("", "boot-a", "state-a"))}), tmp_path)
    assert "STEELYARD_MACHINE" in caught.value.hint


def test_a_machine_that_comes_back_is_used_when_dask_has_noticed_that_it_was_gone(tmp_path: Path) -> None:
    dask = Dask({A: laboratory("a"), C: laboratory("a")}, gone={A})
    work(dask, tmp_path)
    assert dask.handed_out == [(A, 1), (C, 1), (C, 2), (C, 3), (C, 4)]


def test_a_laboratory_that_gave_up_and_was_started_again_is_used(tmp_path: Path) -> None:
    failing = {A: SteelyardError("no memory is left")}
    dask = Dask({A: laboratory("a"), B: laboratory("b")}, failing=failing, started_again={A})
    work(dask, tmp_path)
    assert dask.handed_out == [(A, 1), (B, 2), (B, 1), (A, 3), (B, 4)]


@pytest.mark.parametrize(("before", "after"), [("run-1", "run-3"), ("run-2", "run-1")])
def test_a_run_is_stopped_while_it_begins_or_measures_and_no_other_is(before: str, after: str) -> None:
    stopped: list[str] = []
    session: Any = SimpleNamespace(stop=lambda: stopped.append("run-1"))
    labs.stop(before)
    labs.measuring("run-1", session)
    labs.stop(after)
    labs._sessions.clear()
    labs._stopped.clear()
    assert stopped == ["run-1"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("[design.until]\nwidth_percent = 5\n[factors]", "stopping rule"),
        ('[design]\norder = "published"', "published order"),
    ],
)
def test_studies_that_are_not_made_of_whole_blocks_are_refused(tmp_path: Path, change: str, why: str) -> None:
    study, section = tmp_path / "made.toml", change.splitlines()[-1 if "until" in change else 0]
    study.write_text(made.STUDY.replace(section, change).replace("starts = 3", "starts = 10"))
    with begin(study, tmp_path / "store", here=False) as session, pytest.raises(StudyError, match=why):
        labs._blocks(session)


def test_a_block_that_has_begun_stays_on_its_machine(tmp_path: Path) -> None:
    folder = made.store(tmp_path / "store")
    trial = next(path for path in sorted((folder / "trials").iterdir()))
    trial.rename(tmp_path / "elsewhere")
    study = tmp_path / "made.toml"
    study.write_text(made.STUDY)
    with begin(study, tmp_path / "store", here=False) as session, pytest.raises(StudyError, match="have begun"):
        labs._blocks(session)


def test_a_block_whose_merge_was_interrupted_is_merged_again(tmp_path: Path) -> None:
    folder = made.store(tmp_path / "store")
    whole = sorted(path.name for path in (folder / "trials").iterdir())
    received = labs._received(folder, "2")
    shutil.copytree(folder, received)
    shutil.rmtree(folder / "trials" / whole[0])
    study = tmp_path / "made.toml"
    study.write_text(made.STUDY)
    with begin(study, tmp_path / "store", here=False) as session:
        labs._merge(session, received)
        assert labs._blocks(session) == []
    assert sorted(path.name for path in (folder / "trials").iterdir()) == whole
    assert not received.exists()


def test_what_the_store_has_lost_of_other_blocks_is_no_matter_of_this_one(tmp_path: Path) -> None:
    folder = made.store(tmp_path / "store")
    received = labs._received(folder, "2")
    labs._write(block_of(Store(folder), 2, folder), received)
    for record in Store(folder).trials():
        if record.block < 3:
            shutil.rmtree(folder / "trials" / record.id)
    study = tmp_path / "made.toml"
    study.write_text(made.STUDY)
    with begin(study, tmp_path / "store", here=False) as session:
        labs._merge(session, received)
        assert labs._blocks(session) == [1]


def test_the_last_block_waits_for_a_laboratory_that_has_measured_too_few(tmp_path: Path) -> None:
    """Of four blocks: one of the two laboratories is at work with its first when the other has done two."""
    study = tmp_path / "made.toml"
    study.write_text(made.STUDY.replace("starts = 3", "starts = 4"))
    with begin(study, tmp_path / "store", here=False) as session:
        work = labs._Work(Dask({}), "tcp://10.0.0.9:8786", session, ORDER, [4], print)  # type: ignore[arg-type]
        work._usable = {A: laboratory("a"), B: laboratory("b")}
        work._measured["machine-a"] = 2
        assert work._next() == [B]
        work._busy[B] = 3, Future()
        assert work._next() == []
        work._measured["machine-b"] = 1
        assert work._next() == [A]


@pytest.mark.parametrize("address", ["127.0.0.1", "http://10.0.0.9:8786", "tcp://10.0.0.9"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(SteelyardError, match="is no address of a Dask scheduler"), connected(address):
        pass


def test_without_a_scheduler_it_is_said_what_to_do() -> None:
    with pytest.raises(SteelyardError, match="no Dask scheduler answers at tcp:") as caught, connected(NOWHERE, 0.2):
        pass
    assert "dask scheduler" in caught.value.hint


def test_without_dask_it_is_said_what_to_install() -> None:
    code = f"import sys; sys.modules['distributed'] = None; from steelyard.reading.parallel import connected; {USE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'steelyard[labs]'" in done.stderr
