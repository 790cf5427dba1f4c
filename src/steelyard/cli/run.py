"""`steelyard run STUDY`: do what is missing of a study; safe to repeat, safe to interrupt."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from steelyard import study as studies
from steelyard.cli.clean import reclaim
from steelyard.cli.views import LiveView, PlainView
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.lab.parts import Parts
from steelyard.lab.progress import TimeLeft
from steelyard.lab.resume import refuse_change
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node.folders import cache_folder, state_folder
from steelyard.plan import estimate, expand
from steelyard.plan.machine import read_machine
from steelyard.store import Store, StoreWriter, layout

EXIT_DONE, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 130
BEAT_S = 1.0
ASK = "interrupt: [f]inish the trial, [s]top now, [g]o on?"


def run(study_path: Path, *, store: Path, scale: float, plain: bool, as_json: bool, console: Console) -> int:
    """Carry out a study. Returns the exit code: 0 done, 1 done but some trials invalid, 130 interrupted."""
    study = studies.read(study_path, scale=scale)
    plan = expand(study)
    refused = estimate.refusals(study, plan, read_machine(cache_folder()))
    if refused:
        raise refused[0]
    with StoreWriter(store, study.study.name) as writer:
        _go_on(study, plan, writer)
        writer.intend(study, study_path.read_text(encoding="utf-8"), plan)
        outcome, interrupted = asyncio.run(_conduct(study, plan, writer, plain=plain, console=console))
        folder = writer.folder
    _say(outcome, folder, interrupted=interrupted, as_json=as_json, console=console)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_INVALID if outcome.invalid else EXIT_DONE


def _go_on(study: Study, plan: Plan, writer: StoreWriter) -> None:
    if (writer.folder / layout.STUDY_JSON).is_file():
        before = Store(writer.folder)
        refuse_change(before.study, study, plan, before.trials())


def _foresight(study: Study, plan: Plan) -> Callable[[Sequence[PlannedTrial], Sequence[TrialRecord]], TimeLeft]:
    def look(todo: Sequence[PlannedTrial], records: Sequence[TrialRecord]) -> TimeLeft:
        if not todo:
            return TimeLeft(0.0, 0.0, 0.0)
        rest = estimate.estimate(plan.model_copy(update={"trials": tuple(todo)}), study, records)
        return TimeLeft(rest.seconds, rest.low_s, rest.high_s)

    return look


def _lines(console: Console) -> Callable[[str], None]:
    return lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True)


async def _conduct(
    study: Study, plan: Plan, writer: StoreWriter, *, plain: bool, console: Console
) -> tuple[Outcome, bool]:
    site_names = sorted({str(trial.settings["site"]["name"]) for trial in plan.trials})
    await reclaim(site_names, console=console)
    view = PlainView(_lines(console)) if plain else LiveView(console)
    parts = Parts(cache_folder=cache_folder(), state_folder=state_folder())
    conductor = Conductor(study, plan, writer, parts, view, _foresight(study, plan))
    with view:
        task = asyncio.ensure_future(conductor.run())
        beating = asyncio.ensure_future(_beat(view))
        with _interrupts(conductor, task, view, ask=not plain and sys.stdin.isatty()) as state:
            try:
                return await task, state.interrupted
            except asyncio.CancelledError:
                writer.event("interrupted")
                return conductor.outcome(), True
            finally:
                beating.cancel()


async def _beat(view: LiveView | PlainView) -> None:
    """Let the view speak although nothing happens."""
    while True:
        await asyncio.sleep(BEAT_S)
        view.beat()


class _Interrupt:
    """What ctrl-C means: asked at a terminal, stop at once elsewhere; a second one always stops."""

    def __init__(self, conductor: Conductor, task: asyncio.Future[Outcome], view: LiveView | PlainView) -> None:
        self.interrupted = False
        self._conductor = conductor
        self._task = task
        self._view = view
        self.asking = False

    def stop(self) -> None:
        """Stop now: the trial in flight is lost, everything is released."""
        self.interrupted = True
        self._view.note = "stopping: releasing what was lent"
        self._task.cancel()

    def ask(self) -> None:
        """First ctrl-C at a terminal."""
        if self.asking:
            self.stop()
            return
        self.asking = True
        self._view.note = ASK

    def answer(self, key: str) -> None:
        """One key at the terminal."""
        if not self.asking:
            return
        self.asking = False
        self._view.note = ""
        if key == "s":
            self.stop()
        elif key == "f":
            self.interrupted = True
            self._view.note = "finishing the trial in flight"
            self._conductor.finish()


@contextlib.contextmanager
def _interrupts(
    conductor: Conductor, task: asyncio.Future[Outcome], view: LiveView | PlainView, *, ask: bool
) -> Iterator[_Interrupt]:
    state = _Interrupt(conductor, task, view)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, state.stop)
    loop.add_signal_handler(signal.SIGINT, state.ask if ask else state.stop)
    before = termios.tcgetattr(sys.stdin) if ask else None
    if ask:
        tty.setcbreak(sys.stdin.fileno())
        loop.add_reader(sys.stdin, lambda: state.answer(sys.stdin.read(1)))
    try:
        yield state
    finally:
        if before is not None:
            loop.remove_reader(sys.stdin)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _say(outcome: Outcome, folder: Path, *, interrupted: bool, as_json: bool, console: Console) -> None:
    if as_json:
        print(json.dumps({**asdict(outcome), "store": str(folder), "interrupted": interrupted}))
    console.print(
        f"{outcome.valid} of {outcome.planned} trials valid, {outcome.invalid} invalid, {outcome.missing} missing; "
        f"store {folder}",
        highlight=False,
        soft_wrap=True,
    )
    next_step = "the same command goes on" if outcome.missing else f"next: steelyard report {folder}"
    console.print(next_step, highlight=False, soft_wrap=True)
