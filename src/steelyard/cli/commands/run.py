"""`steelyard run STUDY`: run the missing trials of a study; safe to repeat, safe to interrupt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from steelyard.analysis.narrative.answer_display import repeats_a_caveat
from steelyard.analysis.statistics import objective
from steelyard.analysis.statistics.look import row_of
from steelyard.analysis.statistics.objective import ObjectiveLevel
from steelyard.cli.commands.clean import reclaim
from steelyard.cli.noise_floor import keep
from steelyard.cli.plugin_trust import trust_of
from steelyard.cli.progress_views import LiveView, PlainView
from steelyard.cli.signature import Json, Scale, StoreRoot, StudyFile, Trusted, WithoutMissing
from steelyard.cli.terminal.answer_output import print_answer
from steelyard.cli.terminal.live_cells import LiveCells
from steelyard.cli.terminal.output import message_console, print_wrapped, say, warn_of_damages
from steelyard.file_errors import foreseen
from steelyard.judging.attempts import missing
from steelyard.judging.looks import later, look_of
from steelyard.judging.settings_hash import canonical
from steelyard.judging.stopping import SECONDS_PER_HOUR, Decision, decide, decision_of, rule_of
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.lab.parts import Parts
from steelyard.lab.quiet import QuietGate, look
from steelyard.model.errors import FileError, SteelyardError
from steelyard.model.look import Look
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import reading_commands, secrets, signals
from steelyard.node.folders import cache_folder, state_folder
from steelyard.plan import estimate, load_feasibility, part_notes, preflight
from steelyard.plan.abilities import Abilities
from steelyard.plan.stopping_forecast import likely_blocks
from steelyard.plugin import Plugins
from steelyard.plugin_factory import make_sites
from steelyard.progress.events import Event, TimeLeft
from steelyard.progress.live_file import LiveFile
from steelyard.progress.publisher import Publisher
from steelyard.progress.reason_words import other_limits
from steelyard.progress.state import Live
from steelyard.reading import read
from steelyard.shown_text import json_text
from steelyard.site.base import Site
from steelyard.store import Store, StoreWriter, journal
from steelyard.store.modelled import open_store

EXIT_DONE, EXIT_INVALID, EXIT_INTERRUPTED = 0, 1, 130
BEAT_S = 0.25
KEYS_AT_ONCE = 64
QUIET_WAIT_VARIABLE = "STEELYARD_QUIET_WAIT_S"
PAGE = "report.html"
"""What `report` writes into the study's folder."""
NONE_LOST = "no sealed trial is lost"
ASK = "interrupt: [f]inish the trial, [s]top now, [g]o on?"


def run(
    study_path: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    plain: Annotated[bool, typer.Option("--plain", help="Print log lines instead of a live screen.")] = False,
    quiet_wait_s: Annotated[
        float | None,
        typer.Option(
            "--quiet-wait",
            min=0.0,
            metavar="SECONDS",
            envvar=QUIET_WAIT_VARIABLE,
            help="Longest wait for a quiet machine, instead of limits.quiet_wait_s. 0: end at once, with code 3.",
        ),
    ] = None,
    leave_out_missing: WithoutMissing = False,
    trust: Trusted = False,
    as_json: Json = False,
) -> int:
    """Carry out a study. Returns the exit code: 0 done, 1 done but some trials invalid, 130 interrupted. Raises
    NotQuiet, which ends with 3, if the machine stays busy."""
    # Everything that passes until the first start is the first reading of whether the machine is quiet.
    gate = QuietGate(lambda: look(state_folder()))
    console = message_console()
    plain = plain or not console.is_terminal
    plugins = Plugins(study_path.parent, trust_of(trust))
    study, plan = preflight.read_and_expand(study_path, plugins, scale, leave_out_missing=leave_out_missing)
    preflight.refuse(preflight.missing(study_path, study, plan))
    settings = [trial.settings for trial in plan.trials]
    # Under the lock of the store: nobody else adds trials to what is examined.
    with _none_lost(), StoreWriter(store, study.study.name) as writer:
        warn_of_damages(console, writer.damages)
        asyncio.run(reclaim(_sites(settings, plugins), console=console))
        examined = preflight.examine(study_path, study, plan, plugins, store)
        preflight.refuse(examined.refusals)
        study = examined.study
        writer.conceal = secrets.concealer(settings)
        for note in _notes(plan, examined, plugins):
            say(console, f"note: {note}")
        writer.intend(study, _text(study_path, scale, leave_out_missing=leave_out_missing), plan)
        if quiet_wait_s is not None:
            # Of this session, not of the study: nothing of it is written as if the file said so.
            study = study.model_copy(update={"limits": study.limits.model_copy(update={"quiet_wait_s": quiet_wait_s})})
        try:
            with _none_lost():
                outcome, interrupted = asyncio.run(
                    _conduct(study, plan, plugins, writer, gate, plain=plain, console=console)
                )
        except SteelyardError as error:
            error.message, error.hint = writer.conceal.text(error.message), writer.conceal.text(error.hint)
            with contextlib.suppress(OSError):
                writer.event(journal.SessionFailed(message=error.message, hint=error.hint))
            raise
        folder = writer.folder
    if study.design.kind == "same" and not outcome.missing:
        keep(folder, console, scaled=scale != 1.0)
    opened = open_store(folder)
    records = opened.trials()
    decision = decision_of(plan, records, study)
    this_look = look_of(plan, records, opened.study, opened.look, decision)
    _say(outcome, decision, this_look, folder, interrupted=interrupted, as_json=as_json, console=console)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_INVALID if outcome.invalid else EXIT_DONE


def _notes(plan: Plan, examined: preflight.Preflight, plugins: Plugins) -> Iterator[str]:
    """What `check` notes that is still worth a line when the study begins: of its loads, and of what its sites do."""
    yield from load_feasibility.notes(plan, examined.history, examined.machine.cores, plugins)
    yield from part_notes.of_sites(plan, Abilities(plugins))


def _sites(settings: Sequence[TrialSettings], plugins: Plugins) -> list[Site]:
    """The sites of a plan, of databases and of load nodes, each with its settings once."""
    by_section = {canonical(chosen.part("site", "load_site")): chosen for chosen in settings}
    return [site for _, chosen in sorted(by_section.items()) for site in make_sites(plugins, chosen, state_folder())]


@contextlib.contextmanager
def _none_lost() -> Iterator[None]:
    """What a disk refuses within the block is a FileError that says that no sealed trial is lost."""
    try:
        yield
    except (FileError, OSError) as error:
        failure = foreseen(error)
        if failure is None:
            raise
        if NONE_LOST not in failure.hint:
            failure.hint += f"; {NONE_LOST}"
        raise failure from (None if failure is error else error)


def _text(study_path: Path, scale: float, *, leave_out_missing: bool) -> str:
    """The study file, and on its first line with which options it was read."""
    text = study_path.read_text(encoding="utf-8-sig")
    options = [f"--scale {scale:g}"] if scale != 1.0 else []
    options += ["--without-missing"] if leave_out_missing else []
    return f"# run with {' '.join(options)}\n{text}" if options else text


def _foresight(
    study: Study, plan: Plan, plugins: Plugins
) -> Callable[[Sequence[PlannedTrial], Sequence[TrialRecord]], TimeLeft]:
    rule = rule_of(study)

    def rest(todo: Sequence[PlannedTrial], records: Sequence[TrialRecord]) -> estimate.PlanEstimate:
        return estimate.estimate(plan.model_copy(update={"trials": tuple(todo)}), study, records, plugins=plugins)

    def look(todo: Sequence[PlannedTrial], records: Sequence[TrialRecord]) -> TimeLeft:
        if not todo:
            return TimeLeft(0.0, 0.0, 0.0)
        least = rest(todo, records)
        if rule is None:
            return TimeLeft(least.seconds, least.low_s, least.high_s)
        # What is needed at least, what is likely if the spreads stay as they are, and all up to the cap.
        decision = decide(plan, records, rule)
        likely = rest(_up_to(plan, records, likely_blocks(decision), rule.attempts), records)
        most = rest(_up_to(plan, records, decision.cap, rule.attempts), records)
        left_s = float("inf") if rule.hours is None else max(0.0, rule.hours - decision.hours) * SECONDS_PER_HOUR
        return TimeLeft(min(likely.seconds, left_s), min(least.low_s, left_s), min(most.high_s, left_s))

    return look


def _up_to(plan: Plan, records: Sequence[TrialRecord], block: int, attempts: int) -> list[PlannedTrial]:
    return [trial for trial in missing(plan, records, attempts) if trial.block <= block]


def _lines(console: Console) -> Callable[[str], None]:
    return lambda line: say(console, line)


async def _conduct(
    study: Study, plan: Plan, plugins: Plugins, writer: StoreWriter, gate: QuietGate, *, plain: bool, console: Console
) -> tuple[Outcome, bool]:
    stored = Store(writer.folder)
    records = stored.trials()
    for sentence in other_limits(records, study.limits):
        say(console, f"note: {sentence}")
    cells = LiveCells(later(study, stored.look), records)
    view = PlainView(_lines(console)) if plain else LiveView(console, cells)
    parts = Parts(cache_folder=cache_folder(), state_folder=state_folder(), plugins=plugins)
    live_file = LiveFile(writer.folder, writer.conceal, time.time)
    for process in reading_commands.in_progress(parts.state_folder):
        say(
            console, f"note: process {process} runs another study on this machine: each is background load of the other"
        )
    with reading_commands.session(parts.state_folder) as session, live_file, view:
        publisher = Publisher(time.time, view, live_file, _Announced(session))
        conductor = Conductor(study, plan, writer, parts, publisher, _foresight(study, plan, plugins), gate)
        task = asyncio.ensure_future(conductor.run())
        beating = [asyncio.ensure_future(_beat(one)) for one in (view, live_file)]
        with _interrupts(conductor, task, view, ask=not plain and _at_the_terminal()) as state:
            try:
                return await task, state.interrupted
            except asyncio.CancelledError:
                writer.event(journal.SessionInterrupted())
                return conductor.outcome(), True
            finally:
                for beat in beating:
                    beat.cancel()


class _Announced:
    """Tells other commands whether the study measures or waits."""

    def __init__(self, session: reading_commands.Session) -> None:
        self._session = session

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state."""
        del event
        self._session.waits(live.quiet is not None)


async def _beat(view: LiveView | PlainView | LiveFile) -> None:
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
        self._stopping = False
        self.asking = False

    def stop(self) -> None:
        """Stop now: the trial in flight is lost, everything is released. Asking again changes nothing."""
        if not self._stopping:
            self._stopping = self.interrupted = True
            self._view.note = "stopping: releasing the nodes"
            self._task.cancel()

    def ask(self) -> None:
        """First ctrl-C at a terminal."""
        if self.asking:
            self.stop()
            return
        self.asking = True
        self._view.note = ASK

    def answer(self, keys: bytes) -> None:
        """Keys that were pressed; only f, s and g mean something, and only when asked."""
        if not self.asking:
            return
        for key in keys.decode(errors="replace"):
            if key not in "fsg":
                continue
            self.asking = False
            self._view.note = ""
            if key == "s":
                self.stop()
            elif key == "f":
                self.interrupted = True
                self._view.note = "finishing the trial in flight"
                self._conductor.finish()
            return


def _at_the_terminal() -> bool:
    """Whether keys can be read: a terminal, and this process is not in its background."""
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


@contextlib.contextmanager
def _interrupts(
    conductor: Conductor, task: asyncio.Future[Outcome], view: LiveView | PlainView, *, ask: bool
) -> Iterator[_Interrupt]:
    state = _Interrupt(conductor, task, view)
    loop = asyncio.get_running_loop()
    keyboard = sys.stdin.fileno() if ask else -1
    before = termios.tcgetattr(keyboard) if ask else None

    def read() -> None:
        keys = os.read(keyboard, KEYS_AT_ONCE)
        if keys:
            state.answer(keys)
        else:
            loop.remove_reader(keyboard)

    stop = dict.fromkeys(signals.ENDING, state.stop)
    with signals.heard(stop | {signal.SIGINT: state.ask} if ask else stop):
        try:
            if ask:
                tty.setcbreak(keyboard)
                loop.add_reader(keyboard, read)
            yield state
        finally:
            if before is not None:
                loop.remove_reader(keyboard)
                with contextlib.suppress(termios.error):
                    termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def answer(folder: Path, console: Console) -> None:
    """Print what the study found, the sentence that limits it, and the first caveat that says more.

    The trials are safe in the store: whatever fails here is said, and fails no run.
    """
    try:
        reading = read(folder)
        results = reading.results
        # What was wrong when the session began has been told; these are the files that the answer rests on.
        warn_of_damages(console, [damage for damage in reading.damages if not damage.harmless])
        say(console)
        sentences = list(results.answer)
        if results.answer_table is not None and results.answer_table.rows:
            print_answer(results.answer_table, console)
            sentences = [*objective.answers(results.of(ObjectiveLevel)), sentences[-1]]
        sentences = [*sentences[:-1], *(further.answer[0] for further in results.further), sentences[-1]]
        caveats = [caveat for caveat in results.caveats if not repeats_a_caveat(caveat, sentences)]
        for sentence in (*sentences, *caveats[:1]):
            print_wrapped(sentence, console)
        say(console)
    except Exception as error:  # an analysis that fails must not make a measured study look failed
        say(console, f"the answer cannot be shown here: {type(error).__name__}: {error}", style="yellow")


def _say(
    outcome: Outcome, decision: Decision | None, this_look: Look, folder: Path, *, interrupted: bool, as_json: bool,
    console: Console,
) -> None:  # fmt: skip
    if as_json:
        until = {} if decision is None else {"until": decision.model_dump(mode="json")}
        ended = {**asdict(outcome), "store": str(folder), "interrupted": interrupted, **until}
        print(json_text({"look": row_of(this_look).model_dump(mode="json"), **ended}))
    if this_look.sentence:
        say(console, this_look.sentence, style="bold yellow")
    missing_words = f"at most {outcome.missing}" if decision is not None and decision.go_on else f"{outcome.missing}"
    if outcome.not_needed:
        missing_words = f"{outcome.not_needed} not needed, {missing_words}"
    if decision is not None:
        say(console, f"The study {decision.sentence}")
    say(
        console,
        f"{outcome.valid} of {outcome.planned} trials valid, {outcome.invalid} invalid, {missing_words} missing",
    )
    if outcome.valid and not outcome.missing and not interrupted:
        answer(folder, console)
    if outcome.missing:
        say(console, "next: run the same command again to resume")
    else:
        say(console, f"next: steelyard report {folder}")
        say(console, f"      writes the page {folder / PAGE}")
