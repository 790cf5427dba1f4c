"""Laboratories: whole blocks of a study measured on several machines, each by a Dask worker with the resource `lab`.

Here are plan, store and journal. A laboratory gets one block at a time, measures it in a store of its own, and gives
that store back; it is merged as `steelyard merge` merges stores. Dask carries blocks, and nothing within a trial
(docs/decisions/0031-laboratories-on-dask.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard import __version__
from steelyard.events.base import Event
from steelyard.events.kept import BlockLost
from steelyard.format import count, listed
from steelyard.heavy import distributed
from steelyard.lab.provenance import boot
from steelyard.lab.session import Agree, Say, Session, SessionEnd, begin, no_cost, silence
from steelyard.leases.identity import state_id
from steelyard.model.errors import SteelyardError, StoreError, StudyError
from steelyard.node.folders import state_folder
from steelyard.node.machine_facts import MACHINE_VARIABLE, machine_id
from steelyard.plugins.find import PluginFile, Trust, no_file
from steelyard.progress.event_words import event_line
from steelyard.progress.state import Live
from steelyard.reading.parallel import connected
from steelyard.store import layout
from steelyard.store.merge import merge
from steelyard.store.merged_journal import OF_THE_STUDY
from steelyard.store.plain_file import sha256_of

RESOURCE: Final = "lab"
FEWEST_BLOCKS: Final = 2
"""Least blocks for each laboratory: with one, laboratory and block could not be separated."""
FIRST_S: Final = 30.0
"""Longest wait for the first laboratory."""
LOOK_S: Final = 1.0
POLL_S: Final = 0.05
"""Times between two questions to the scheduler, and between two looks whether a block is done."""
FOLDER: Final = "laboratory"
"""Folder of the block in flight, in the state folder of a laboratory."""
SHORT: Final = 12
"""Characters of a machine's id before each line of its laboratory."""
START_ONE: Final = "dask worker {} --resources lab=1 --nworkers 1 --nthreads 1"

OF_OTHERS: Final = 0o077
PRIVATE: Final = "put it on each laboratory, and name it by its absolute path; or let others read it"

Files = Mapping[str, bytes]
"""Path in a folder to content."""


@dataclass(frozen=True)
class Order:
    """Study as a laboratory must know it to measure a block of it."""

    study: str
    """Name of the study file."""
    files: Files
    """The study file and the files that it names, by their paths from its folder."""
    trusted: Collection[str]
    """SHA-256 of the Python files that may be executed."""
    written: Mapping[str, str]
    """File of the study, as it is written into the store, to its SHA-256."""
    options: Mapping[str, Any]
    """Those of `begin` for a session."""
    run: str
    """Name of the client's run, which no other run has: its topic, and what is stopped with it."""


@dataclass(frozen=True)
class Laboratory:
    """A Dask worker, as it describes itself."""

    labs: float
    """Amount of the resource `lab`."""
    version: str
    ids: tuple[str, str, str]
    """Of the machine, of the boot of its kernel, and of the state folder, which holds what only one of them may end."""
    process: str = ""
    """Id of the worker, which another one at its address does not have."""


_sessions: dict[str, Session] = {}
"""The session of this process by its run, if it is a laboratory that measures."""
_stopped: set[str] = set()
"""Runs that measure nothing any more."""


def about(dask_worker: distributed.Worker) -> Laboratory:
    """On a worker: describe it."""
    amount, state = dask_worker.state.total_resources.get(RESOURCE, 0.0), state_folder()
    state.mkdir(parents=True, exist_ok=True)
    return Laboratory(amount, __version__, (machine_id(), boot(), state_id(state)), dask_worker.id)


def stop(run: str) -> None:
    """On a worker: stop what it measures for a run; the trial in flight is lost, everything is released."""
    _stopped.add(run)
    if session := _sessions.get(run):
        session.stop()


def measuring(run: str, session: Session) -> None:
    """On a worker: note that a session measures for a run, and stop it if the run was stopped while it began."""
    _sessions[run] = session
    if run in _stopped:
        session.stop()


def measure_block(order: Order, block: int) -> Files:
    """On a worker: measure a block in a store of its own; gives that store. Raises SteelyardError."""
    worker, folder = distributed.get_worker(), state_folder() / FOLDER

    def show(live: Live, event: Event) -> None:
        if line := event_line(live, event):
            worker.log_event(order.run, f"{machine_id()[:SHORT]}: {line}")

    shutil.rmtree(folder, ignore_errors=True)  # of a block during which the worker was killed
    try:
        _write(order.files, folder / "study")
        path, trust = folder / "study" / order.study, _trusting(order.trusted)
        # Its cost was agreed to where the study was begun.
        options = {**order.options, "trust": trust, "blocks": {block}, "agree": lambda cost: True}
        with begin(path, folder / "store", **options) as session:
            measuring(order.run, session)
            if _written(session.folder) != order.written:
                raise StoreError("study or plan are others here", "install the same Steelyard and plug-ins everywhere")
            asyncio.run(session.run(progress=show))
        if session.todo():
            raise SteelyardError("it was stopped")
        return _read(session.folder)
    except SteelyardError as error:  # as one that travels: others have further arguments
        raise SteelyardError(error.message, error.hint) from None
    finally:
        _sessions.clear()
        shutil.rmtree(folder, ignore_errors=True)


def _trusting(sha256: Collection[str]) -> Trust:
    def trust(file: PluginFile) -> None:
        if file.sha256 not in sha256:
            no_file(file)

    return trust


def _read(folder: Path) -> Files:
    """Every file below a folder, except for hidden ones."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        if not _is_below(name):
            raise StoreError(f"a laboratory sent a file {name!r}", "do not use that laboratory")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _is_below(name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _written(folder: Path) -> dict[str, str]:
    return {name: sha256_of(folder / name, folder) for name in OF_THE_STUDY}


def measure_on_laboratories(
    study: str | Path, address: str, store: str | Path = "store", *, trust: Trust = no_file, say: Say = silence,
    agree: Agree = no_cost, quiet_wait_s: float | None = None, **options: Any,
) -> SessionEnd:  # fmt: skip
    """Measure what is missing of a study on the laboratories of the Dask scheduler at `address`, in whole blocks: safe
    to repeat, safe to interrupt, but for the blocks in flight. Otherwise as `begin`, with its options. Raises
    SteelyardError if that is impossible, or if no laboratory can go on."""
    path, trusted = Path(study), set()

    def noted(file: PluginFile) -> None:
        trust(file)
        trusted.add(file.sha256)

    begun = begin(path, store, trust=noted, say=say, agree=agree, here=False, **options)
    with connected(address) as client, begun as session:
        for received in sorted(session.folder.parent.glob(_received(session.folder, "*").name)):
            _merge(session, received)  # it was interrupted
        blocks, written = _blocks(session), _written(session.folder)
        named = {name: file for name, file in session.plugins.named.items() if _is_below(name)}
        if private := [name for name, file in named.items() if not file.stat().st_mode & OF_OTHERS]:
            raise StudyError(f"{private[0]} is not sent to laboratories: it is private to you", PRIVATE, key="--labs")
        files = {name: file.read_bytes() for name, file in {**named, path.name: path}.items()}
        run = secrets.token_hex(8)
        order = Order(path.name, files, trusted, written, {**options, "quiet_wait_s": quiet_wait_s}, run)
        client.subscribe_topic(run, lambda event: say(event[1]))
        work = _Work(client, address, session, order, blocks, say)
        try:
            work.run()
        except KeyboardInterrupt:
            session.interrupted = True
        finally:
            work.stop()
    return session.end()


def _received(into: Path, block: str) -> Path:
    """Folder of a block that has come from its laboratory, until it is merged."""
    return into.parent / f".{into.name}.block-{block}"


def _merge(session: Session, received: Path) -> None:
    """Merge a block, also a second time, whatever the store has lost of others. Raises StoreError."""
    sent = {path.name.partition(".")[0] for path in (received / layout.TRIALS).iterdir()}
    merged = merge([received], session.folder, session.writer)
    if problems := [*merged.conflicts, *sorted(sent.intersection(merged.lost))]:
        hint = "move it away, and run the same command again: its block is measured again"
        raise StoreError(f"the block in {received} cannot be merged: {'; '.join(problems)}", hint)
    shutil.rmtree(received)


def _blocks(session: Session) -> list[int]:
    """Blocks to measure, in order. Raises StudyError for a study that cannot be divided into whole blocks."""
    study = session.study
    why = {
        "a stopping rule decides after each block whether there is a next one": study.design.until is not None,
        "a noise floor is that of one machine": study.design.kind == "same",
        "in the published order a block is no unit": study.design.order != "blocks",
        "a threshold comes from trials of all blocks, before others begin": bool(study.derived),
    }
    for reason, holds in why.items():
        if holds:
            hint = "run it on one machine, without --labs"
            raise StudyError(f"this study cannot be given to laboratories: {reason}", hint, key="--labs")
    if session.plan.blocks < FEWEST_BLOCKS:
        what = f"this study has {count(session.plan.blocks, 'block')}, and a laboratory needs {FEWEST_BLOCKS}"
        raise StudyError(what, f"set design.starts = {FEWEST_BLOCKS}, or run it without --labs", key="--labs")
    blocks = sorted({trial.block for trial in session.todo()})
    if begun := sorted({record.block for record in session.records}.intersection(blocks)):
        named = listed([str(block) for block in begun])
        hint = "finish them without --labs, on the machine that began them; or measure into another --store"
        raise StudyError(f"blocks that have begun are not handed out: {named}", hint, key="--labs")
    return blocks


class _Work:
    """Blocks that are to be measured or in flight, and the laboratories."""

    def __init__(
        self, client: distributed.Client, address: str, session: Session, order: Order, blocks: list[int], say: Say,
        first_s: float = FIRST_S,
    ) -> None:  # fmt: skip
        self._client, self._session, self._order, self._blocks, self._say = client, session, order, blocks, say
        self._start_one = f"start one with `{START_ONE.format(address)}`"
        self._known: dict[str, Laboratory | Exception] = {}
        """Address of each worker to what it is, oldest first."""
        self._gave_up: dict[str, SteelyardError] = {}
        self._why_not: dict[str, SteelyardError] = {}
        """Reason for each laboratory that is not used."""
        self._usable: dict[str, Laboratory] = {}
        self._said: dict[str, str] = {}
        """Last sentence about each laboratory."""
        self._busy: dict[str, tuple[int, Future[Files]]] = {}
        self._machines: dict[str, str] = {}
        """Address of each laboratory that got a block, to its machine."""
        self._measured = Counter(machine for machine, _ in {(one.machine_id, one.block) for one in session.records})
        """Number of blocks that each machine has measured."""
        self._begun = self._waits = False
        self._until_s = time.monotonic() + first_s

    def run(self) -> None:
        """Measure all blocks. Raises SteelyardError if no laboratory is left to do it."""
        while self._blocks or self._busy:
            self._look()
            for address in [address for address, (_, future) in self._busy.items() if future.done()]:
                self._take(address)
            self._choose()
            for address in self._next():
                self._hand_out(address)
            if not self._usable:
                if self._gave_up or (not self._begun and time.monotonic() > self._until_s):
                    none = SteelyardError("no laboratory has come", self._start_one)
                    raise [*self._gave_up.values(), *self._why_not.values(), none][0]
                if not self._waits:
                    self._say(f"waiting for a laboratory, a Dask worker with the resource lab=1; {self._start_one}")
            self._waits = not self._usable
            until_s = time.monotonic() + LOOK_S
            while time.monotonic() < until_s and not any(future.done() for _, future in self._busy.values()):
                time.sleep(POLL_S)

    def _next(self) -> list[str]:
        """Laboratories that get a block now: those that have measured least first. The last blocks are kept for those
        that are at work and would otherwise have measured too few."""
        has = {address: self._measured[lab.ids[0]] + (address in self._busy) for address, lab in self._usable.items()}
        free = sorted(has.keys() - self._busy.keys(), key=lambda address: (has[address], address))
        kept = sum(max(0, FEWEST_BLOCKS - has[address]) for address in self._busy.keys() & has.keys())
        return [
            address
            for place, address in enumerate(free)
            if place < len(self._blocks) - (kept if has[address] >= FEWEST_BLOCKS else 0)
        ]

    def stop(self) -> None:
        """Stop the laboratories that still measure."""
        if self._busy:
            self._say(f"{count(len(self._busy), 'block')} in flight: lost, the laboratories stop")
            with contextlib.suppress(Exception):  # they, or the scheduler, may be gone
                self._client.run(stop, self._order.run, workers=list(self._busy), on_error="ignore")
            for address in list(self._busy):
                self._lost(address, "the command was stopped")

    def _look(self) -> None:
        """See who has gone, and who has come. Raises SteelyardError if the scheduler has gone."""
        try:
            there = set(self._client.nthreads())
            # Another worker may have come to the address of one that gave up.
            asked = sorted(there - self._known.keys() | there & self._gave_up.keys())
            described = self._client.run(about, workers=asked, on_error="return") if asked else {}
        except OSError as error:
            hint = "blocks that were merged are in the store: run the same command again"
            raise SteelyardError(f"the Dask scheduler no longer answers: {error}", hint) from error
        for address in self._known.keys() - there:
            for what in (self._known, self._gave_up, self._said):
                what.pop(address, None)
            if address in self._busy:
                self._say(f"laboratory {address} has gone")
                self._again(address, "its laboratory has gone")
        for address, lab in described.items():
            if not isinstance(lab, OSError) and lab != self._known.get(address):  # an OSError: it is going, or coming
                self._known[address] = lab
                self._gave_up.pop(address, None)

    def _choose(self) -> None:
        """Decide who is used now: one in whose way another was is, once that has gone."""
        self._usable, self._why_not = {}, {}
        for address, lab in self._known.items():
            if isinstance(lab, Laboratory) and lab.labs < 1:
                continue
            why = self._gave_up.get(address) or self._unfit(address, lab)
            if why is None and isinstance(lab, Laboratory):
                self._usable[address] = lab
                line = f"laboratory {address}: machine {lab.ids[0]}"
            elif why is not None:
                self._why_not[address] = why
                line = f"{why.message}: not used"
            if self._said.get(address) != line:
                self._said[address] = line
                self._say(line)

    def _unfit(self, address: str, lab: Laboratory | Exception) -> SteelyardError | None:
        """Reason why a laboratory cannot be used in addition to those that are; None if it can."""
        blocks, labs = self._session.plan.blocks, len(self._usable) + 1
        name = f"name it in {MACHINE_VARIABLE}"
        if isinstance(lab, Exception) or lab.version != __version__:
            other = f": {lab}" if isinstance(lab, Exception) else f", but {lab.version}"
            why, hint = f"does not have Steelyard {__version__}{other}", "install the same version everywhere"
        elif not lab.ids[0]:
            why, hint = "is on a machine without an id", name
        elif shared := [other for other, known in self._usable.items() if {*known.ids} & {*lab.ids}]:
            why = f"is on the machine of {shared[0]}, or has its state folder: each would disturb the other"
            hint = f"stop one of them; if it is another machine with the same id, {name}; if homes are shared, set "
            hint += "STEELYARD_STATE to a folder of its own"
        elif blocks < FEWEST_BLOCKS * labs:
            why = f"is one too many for {count(blocks, 'block')}: each needs {FEWEST_BLOCKS}, or laboratory and block "
            why += "cannot be separated"
            hint = f"set design.starts = {FEWEST_BLOCKS * labs}, or stop a laboratory"
        else:
            return None
        return SteelyardError(f"laboratory {address} {why}", hint)

    def _hand_out(self, address: str) -> None:
        self._begun, block = True, self._blocks.pop(0)
        self._machines[address] = self._usable[address].ids[0]
        # Of an executor, whose future is done when its result is here: a worker may die while it sends.
        future = self._client.get_executor().submit(
            measure_block, self._order, block, workers=[address], allow_other_workers=False, resources={RESOURCE: 1},
            pure=False, retries=0,
        )  # fmt: skip
        self._busy[address] = block, future
        self._say(f"block {block}: to laboratory {address}")

    def _lost(self, address: str, why: str) -> int:
        """Forget a block in flight; the journal does not."""
        block, future = self._busy.pop(address)
        future.cancel()
        self._session.writer.event(BlockLost(block=block, machine=self._machines[address], why=why))
        return block

    def _again(self, address: str, why: str) -> None:
        block = self._lost(address, why)
        self._blocks.insert(0, block)
        self._say(f"block {block} goes to another laboratory")

    def _take(self, address: str) -> None:
        """Merge a block, or hand it out again if its laboratory failed."""
        block, future = self._busy[address]
        try:
            files = future.result()
        except Exception as error:  # whatever went wrong there, another laboratory may do it
            hint = error.hint if isinstance(error, SteelyardError) else ""
            self._gave_up[address] = SteelyardError(f"laboratory {address} gave up: {error}", hint)
            self._again(address, f"its laboratory gave up: {error}")
            return
        into = self._session.folder
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=f".{into.name}.") as folder:
            _write(files, Path(folder) / "block")
            # It is there whole, or not at all: the laboratory has it no longer.
            (Path(folder) / "block").rename(_received(into, str(block)))
        del self._busy[address]  # whatever happens to its merge, it is not lost
        _merge(self._session, _received(into, str(block)))
        self._measured[self._machines[address]] += 1
        self._say(f"block {block} is merged, {count(len(self._blocks) + len(self._busy), 'block')} left")
