"""Laboratories: whole blocks of a study measured on several machines, each by a Dask worker with the resource `lab`.

Here are plan, store and journal. A laboratory gets one block at a time, measures it in a store of its own, and gives
that store back; it is merged as `steelyard merge` merges stores. Dask carries blocks, and nothing within a trial
(docs/decisions/0031-laboratories-on-dask.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from steelyard import __version__
from steelyard.events.base import Event
from steelyard.format import count, listed
from steelyard.heavy import distributed
from steelyard.lab.provenance import boot
from steelyard.lab.session import Say, Session, SessionEnd, begin, silence
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
"""How often the scheduler is asked who is there, and looked whether a block is done."""
FOLDER: Final = "laboratory"
"""Folder of the block in flight, in the state folder of a laboratory."""
START_ONE: Final = "dask worker {} --resources lab=1 --nworkers 1 --nthreads 1"

Files = Mapping[str, bytes]
"""Path in a folder to content."""


@dataclass(frozen=True)
class Order:
    """A block to measure, and everything that a laboratory must know for it."""

    block: int
    study: str
    """Name of the study file."""
    files: Files
    """The study file and the files that it names, by their paths from its folder."""
    trusted: frozenset[str]
    """SHA-256 of the Python files that may be executed."""
    written: Mapping[str, str]
    """File of the study, as it is written into the store, to its SHA-256."""
    command: tuple[str, ...]
    scale: float
    quiet_wait_s: float | None
    without_missing: bool


@dataclass(frozen=True)
class Measured:
    """A laboratory's answer: its store, or what kept it from measuring the block."""

    files: Files = field(default_factory=dict)
    problem: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Laboratory:
    """A Dask worker, as it describes itself."""

    labs: float
    """Amount of the resource `lab`."""
    version: str
    machine: str
    boot: str

    def is_with(self, other: Laboratory) -> bool:
        """Whether both are on one machine."""
        return bool({self.machine, self.boot} & {other.machine, other.boot})


_sessions: list[Session] = []
"""The session of this process, if it is a laboratory that measures."""


def about(dask_worker: distributed.Worker) -> Laboratory:
    """On a worker: describe it."""
    return Laboratory(dask_worker.state.total_resources.get(RESOURCE, 0.0), __version__, machine_id(), boot())


def stop() -> None:
    """On a worker: stop what it measures; the trial in flight is lost, everything is released."""
    for session in _sessions:
        session.stop()


def measure_block(order: Order) -> Measured:
    """On a worker: measure a block in a store of its own."""
    worker = distributed.get_worker()

    def say(line: str) -> None:
        worker.log_event(order.written[layout.PLAN], f"{worker.address}: {line}")

    def show(live: Live, event: Event) -> None:
        if line := event_line(live, event):
            say(line)

    folder = state_folder() / FOLDER
    # Of a block that was killed.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _write(order.files, folder / "study")
        with begin(
            folder / "study" / order.study, folder / "store", trust=_trusting(order.trusted), scale=order.scale,
            quiet_wait_s=order.quiet_wait_s, without_missing=order.without_missing, say=say, command=order.command,
            blocks={order.block},
        ) as session:  # fmt: skip
            _sessions.append(session)
            if _written(session.folder) != order.written:
                raise StoreError("study or plan are others here", "install the same Steelyard and plug-ins everywhere")
            asyncio.run(session.run(progress=show))
        if session.todo():
            return Measured(problem="it was stopped")
        return Measured(_read(session.folder))
    except SteelyardError as error:
        return Measured(problem=error.message, hint=error.hint)
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
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


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
    study: str | Path,
    address: str,
    store: str | Path = "store",
    *,
    trust: Trust = no_file,
    scale: float = 1.0,
    quiet_wait_s: float | None = None,
    without_missing: bool = False,
    say: Say = silence,
    command: Sequence[str] = (),
) -> SessionEnd:
    """Measure what is missing of a study on the laboratories of the Dask scheduler at `address`, in whole blocks: safe
    to repeat, safe to interrupt, but for the blocks in flight. Otherwise as `measure`. Raises SteelyardError if that
    is impossible, or if no laboratory can go on."""
    trusted: set[str] = set()

    def noted(file: PluginFile) -> None:
        trust(file)
        trusted.add(file.sha256)

    path = Path(study)
    begun = begin(
        path, store, trust=noted, scale=scale, without_missing=without_missing, say=say, command=command, here=False
    )
    with connected(address) as client, begun as session:
        blocks = _blocks(session)
        named = {name: file for name, file in session.plugins.named.items() if _is_below(name)}
        files = {name: file.read_bytes() for name, file in {**named, path.name: path}.items()}
        orders = [
            Order(
                block, path.name, files, frozenset(trusted), _written(session.folder), tuple(command), scale,
                quiet_wait_s, without_missing,
            )
            for block in blocks
        ]  # fmt: skip
        work = _Work(client, address, session, deque(orders), say)
        client.subscribe_topic(_written(session.folder)[layout.PLAN], lambda event: say(str(event[1])))
        try:
            work.run()
        except KeyboardInterrupt:
            session.interrupted = True
        finally:
            work.stop()
    return session.end()


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
    blocks = sorted({trial.block for trial in session.todo()})
    if begun := sorted({record.block for record in session.records}.intersection(blocks)):
        raise StudyError(
            f"blocks that have begun are not handed out: {listed([str(block) for block in begun])}",
            "finish them by `steelyard run` without --labs, on the machine that began them; or measure into another "
            "--store", key="--labs",
        )  # fmt: skip
    return blocks


class _Work:
    """Blocks that are to be measured or in flight, and the laboratories."""

    def __init__(
        self, client: distributed.Client, address: str, session: Session, orders: deque[Order], say: Say
    ) -> None:
        self._client, self._session, self._orders, self._say = client, session, orders, say
        self._start_one = f"start one with `{START_ONE.format(address)}`"
        self._known: dict[str, Laboratory | None] = {}
        """Address of each worker to what it is; None: no laboratory, or one that is not used."""
        self._busy: dict[str, tuple[Order, distributed.Future]] = {}
        self._problem: SteelyardError | None = None
        """Why the newest laboratory that is not used is not."""
        self._begun = self._waits = False

    @property
    def _usable(self) -> dict[str, Laboratory]:
        return {address: one for address, one in self._known.items() if one is not None}

    def run(self) -> None:
        """Measure all blocks. Raises SteelyardError if there is nobody to do it."""
        begun_s = time.monotonic()
        while self._orders or self._busy:
            self._look()
            for address in [address for address, (_, future) in self._busy.items() if future.done()]:
                self._take(address)
            for address in self._usable.keys() - self._busy.keys():
                self._hand_out(address)
            if not self._usable:
                if self._problem is not None:
                    raise self._problem
                if not self._begun and time.monotonic() > begun_s + FIRST_S:
                    raise SteelyardError("no laboratory has come", self._start_one)
                if not self._waits:
                    self._say(f"waiting for a laboratory, a Dask worker with the resource lab=1; {self._start_one}")
            self._waits = not self._usable
            until_s = time.monotonic() + LOOK_S
            while time.monotonic() < until_s and not any(future.done() for _, future in self._busy.values()):
                time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the laboratories that still measure."""
        if self._busy:
            self._say(f"{count(len(self._busy), 'block')} in flight: lost, the laboratories stop")
            with contextlib.suppress(Exception):  # they, or the scheduler, may be gone
                self._client.run(stop, workers=list(self._busy), on_error="ignore")
                self._client.cancel([future for _, future in self._busy.values()])

    def _look(self) -> None:
        """See who has gone, and who has come. Raises SteelyardError if the scheduler has gone."""
        try:
            there = set(self._client.nthreads())
            new = sorted(there - self._known.keys())
            described = self._client.run(about, workers=new, on_error="return") if new else {}
        except OSError as error:
            hint = "blocks that were merged are in the store: run the same command again"
            raise SteelyardError(f"the Dask scheduler no longer answers: {error}", hint) from error
        for address in self._known.keys() - there:
            del self._known[address]
            if address in self._busy:
                self._again(address, "has gone")
        for address, one in described.items():
            self._known[address] = one if isinstance(one, Laboratory) and one.labs < 1 else self._checked(address, one)
            if self._known[address] is not None:
                self._say(f"laboratory {address}: machine {one.machine}")

    def _checked(self, address: str, one: Laboratory | Exception) -> Laboratory | None:
        """A laboratory that can be used; None for another, once blocks are handed out. Raises SteelyardError before."""
        blocks, labs = self._session.plan.blocks, len(self._usable) + 1
        name = f"name it in {MACHINE_VARIABLE}"
        if isinstance(one, Exception):
            why, hint = f"does not have Steelyard {__version__}: {one}", "install the same version everywhere"
        elif one.version != __version__:
            why, hint = f"has Steelyard {one.version}, not {__version__}", "install the same version everywhere"
        elif not one.machine:
            why, hint = "is on a machine without an id", name
        elif shared := [other for other, known in self._usable.items() if known.is_with(one)]:
            why = f"is on the machine of {shared[0]}: each would be background load of the other"
            hint = f"stop one of them; if it is another machine with the same id, {name}"
        elif blocks < FEWEST_BLOCKS * labs:
            why = f"is one too many for {count(blocks, 'block')}: each needs {FEWEST_BLOCKS}, or laboratory and block "
            why += "cannot be separated"
            hint = f"set design.starts = {FEWEST_BLOCKS * labs}, or stop a laboratory"
        else:
            return one
        self._not_used(address, why, hint)
        if not self._begun and self._problem is not None:
            raise self._problem
        return None

    def _not_used(self, address: str, why: str, hint: str) -> None:
        self._known[address] = None
        self._problem = SteelyardError(f"laboratory {address} {why}", hint)
        self._say(self._problem.message)

    def _hand_out(self, address: str) -> None:
        if self._orders:
            self._begun = True
            order = self._orders.popleft()
            self._say(f"block {order.block}: to laboratory {address}")
            future = self._client.submit(
                measure_block, order, workers=[address], allow_other_workers=False, resources={RESOURCE: 1},
                pure=False, retries=0,
            )  # fmt: skip
            self._busy[address] = order, future

    def _again(self, address: str, why: str) -> None:
        order, future = self._busy.pop(address)
        future.cancel()
        self._orders.appendleft(order)
        self._say(f"laboratory {address} {why}: block {order.block} goes to another")

    def _take(self, address: str) -> None:
        """Merge a block, or hand it out again if its laboratory failed."""
        order, future = self._busy[address]
        try:
            measured: Measured = future.result()
        except Exception as error:  # whatever went wrong there, another laboratory may do it
            measured = Measured(problem=f"{type(error).__name__}: {error}")
        if measured.problem:
            self._not_used(address, f"gave up: {measured.problem}", measured.hint)
            self._again(address, "is not used any more")
            return
        into = self._session.folder
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=f".{into.name}.") as folder:
            _write(measured.files, Path(folder))
            merged = merge([Path(folder)], into, self._session.writer)
        if merged.conflicts or merged.lost:
            why = "; ".join((*merged.conflicts, *merged.lost))
            raise StoreError(f"block {order.block} of laboratory {address} cannot be merged: {why}", path=str(into))
        del self._busy[address]
        left = count(len(self._orders) + len(self._busy), "block")
        self._say(f"block {order.block} is merged, {left} left")
