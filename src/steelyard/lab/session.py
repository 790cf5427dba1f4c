"""Session: one run of a study, from its file to the last trial that can be measured now.

A session reads nothing from a terminal and prints nothing: it shows its progress to views, and passes sentences for
people to `say`. The command line, a notebook and any other program run a study by the same functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import ValidationError

from steelyard.events.base import Event
from steelyard.events.kept import QuietAwaited, SessionFailed, SessionInterrupted
from steelyard.file_errors import foreseen
from steelyard.judging.looks import look_of
from steelyard.judging.settings_hash import canonical
from steelyard.judging.stopping import Decision, decision_of
from steelyard.lab import noise_floor
from steelyard.lab.conductor import Conductor, Outcome
from steelyard.lab.leftovers import reclaim
from steelyard.lab.parts import LabParts
from steelyard.lab.quiet import QuietGate, look
from steelyard.lab.time_left import forecast
from steelyard.model.damage import damage_lines
from steelyard.model.errors import FileError, SteelyardError, StudyError
from steelyard.model.look import Look
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Limits, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import reading_commands, secrets
from steelyard.node.folders import state_folder
from steelyard.plan import check, preflight, rent
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins, Trust, no_file
from steelyard.progress.live_file import LiveFile
from steelyard.progress.publisher import Publisher, View
from steelyard.progress.reason_words import other_limits, waiting_words
from steelyard.progress.state import Live
from steelyard.site.base import Site
from steelyard.store import Store, StoreWriter
from steelyard.store.modelled import open_store
from steelyard.tomlfile.problems import from_validation

BEAT_S = 0.25
POLL_S = 0.2
"""Longest wait in one piece: a signal that another library's thread receives does not wake this one."""
NONE_LOST = "no sealed trial is lost"
ANOTHER = "runs another study on this machine: each is background load of the other"

Say = Callable[[str], None]
"""Takes a sentence for people."""


Agree = Callable[[str], bool]
"""Asks whether a cost, in words, is agreed to."""


def silence(line: str) -> None:
    """Say nothing."""


def no_cost(words: str) -> bool:
    """Agree to nothing that costs money."""
    return False


@runtime_checkable
class Beats(Protocol):
    """A view that shows time passing although nothing happens."""

    def beat(self) -> None:
        """Take note that time has passed."""
        ...


@dataclass(frozen=True)
class SessionEnd:
    """End of a session, and progress of its study."""

    outcome: Outcome
    interrupted: bool
    """Whether it was stopped before its trials were done."""
    folder: Path
    """The study's folder in the store, for `steelyard.read`."""
    decision: Decision | None
    """Decision of the stopping rule; None without one."""
    look: Look
    """Which look at the study its trials give."""
    searched: bool = False
    """Whether its trials are searches: those that are not valid bound the answer."""


class Session:
    """A study whose store is locked and that is ready to be measured; made by `begin`."""

    def __init__(
        self, study: Study, plan: Plan, records: Sequence[TrialRecord], abilities: Abilities, writer: StoreWriter,
        gate: QuietGate, say: Say, command: Sequence[str], *, scaled: bool, blocks: Collection[int] | None = None,
    ) -> None:  # fmt: skip
        self.study = study
        self.plan = plan
        self.folder = writer.folder
        self.records = records
        """Trials that the store had when the session began."""
        self.look = Store(writer.folder).look
        """The look at the study that the store had recorded."""
        self.interrupted = False
        self.over = False
        """Whether `begin`'s block was left, and the store is no longer locked."""
        self.raised: BaseException | None = None
        """Exception that `progress` raised."""
        self.writer, self._say, self._scaled = writer, say, scaled
        self.plugins = abilities.plugins
        self._parts = LabParts(abilities.plugins)
        self._publisher = Publisher(time.time)
        self._conductor = Conductor(
            study, plan, writer, self._parts, self._publisher, forecast(study, plan, abilities), gate, command,
            blocks,
        )  # fmt: skip
        self._task: asyncio.Future[Outcome] | None = None
        self._stopped = False

    def finish(self) -> None:
        """Stop when the trial in flight is sealed. May be called from any thread."""
        self.interrupted = True
        self._conductor.finish()

    def stop(self) -> None:
        """Stop now: the trial in flight is lost, everything is released. May be called from any thread, and again."""
        if not self._stopped:
            self._stopped = self.interrupted = True
            if self._task is not None:
                with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
                    self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def run(self, *views: View, progress: Progress | None = None) -> Outcome:
        """Measure what is missing; return when that is done or the session is stopped. To cancel this call is to stop.
        Raises SteelyardError when the laboratory cannot continue, and whatever `progress` raises, which stops."""
        outcome = await self.measured(*views, progress=progress)
        if self.raised is not None:
            raise self.raised
        return outcome

    async def measured(self, *views: View, progress: Progress | None) -> Outcome:
        """As `run`, but what `progress` raised is left in `raised`."""
        if self.over:
            raise SteelyardError("the session has ended, and its store is no longer locked", "begin another")
        try:
            with _none_lost():
                return await self._run(views if progress is None else (*views, _Called(progress, self)))
        except SteelyardError as error:
            conceal = self.writer.conceal
            error.message, error.hint = conceal.text(error.message), conceal.text(error.hint)
            with contextlib.suppress(OSError):
                self._conductor.watcher.tell(SessionFailed(message=error.message, hint=error.hint))
            raise

    async def _run(self, views: Sequence[View]) -> Outcome:
        with (
            reading_commands.session(self._parts.state_folder) as announced,
            LiveFile(self.folder, self.writer.conceal, time.time) as live_file,
        ):
            self._publisher.show_to(*views, live_file, _Announced(announced))
            self._task = asyncio.ensure_future(self._conductor.run())
            if self._stopped:
                self._task.cancel()
            beating = [asyncio.ensure_future(_beat(view)) for view in (*views, live_file) if isinstance(view, Beats)]
            try:
                return await self._task
            except asyncio.CancelledError:
                self.interrupted = True
                self._conductor.watcher.tell(self._stop_event())
                return self._conductor.outcome()
            finally:
                for beat in beating:
                    beat.cancel()

    def _stop_event(self) -> SessionFailed | SessionInterrupted:
        if self.raised is None:
            return SessionInterrupted()
        return SessionFailed(message=f"progress raised {type(self.raised).__name__}: {self.raised}", hint=NONE_LOST)

    def todo(self) -> list[PlannedTrial]:
        """Trials that are missing in the store now."""
        self._conductor.read_again()
        return self._conductor.todo()

    def end(self) -> SessionEnd:
        """Progress of the study, read from its store; keeps the noise floor that a study of identical systems has
        found. For after `begin`'s block, when the store is no longer locked."""
        self._conductor.read_again()
        outcome = self._conductor.outcome()
        if self.study.design.kind == "same" and not outcome.missing:
            self._say(noise_floor.keep(self.folder, scaled=self._scaled))
        opened = open_store(self.folder)
        records = opened.trials()
        decision = decision_of(self.plan, records, self.study)
        this_look = look_of(self.plan, records, opened.study, opened.look, decision)
        searched = self.study.load.schedule == "search"
        return SessionEnd(outcome, self.interrupted, self.folder, decision, this_look, searched)


@contextlib.contextmanager
def begin(
    study: str | Path,
    store: str | Path = "store",
    *,
    trust: Trust = no_file,
    scale: float = 1.0,
    quiet_wait_s: float | None = None,
    without_missing: bool = False,
    say: Say = silence,
    command: Sequence[str] | None = None,
    agree: Agree = no_cost,
    blocks: Collection[int] | None = None,
    here: bool = True,
) -> Iterator[Session]:
    """Read a study file, refuse what cannot be measured, lock its store in the folder `store`, and release what killed
    studies left behind. Within the block the session can run; notes of `check` are passed to `say`.

    `trust` decides whether a Python file that the study names is executed. `quiet_wait_s` stands in for the study's
    `limits.quiet_wait_s` in this session. `command` is noted as that which resumes the study; None: `steelyard run`
    with the same study and store. `agree` is asked before anything that costs money is lent. `blocks`: the only ones
    that it measures; None: all. `here`: whether it measures on this machine; otherwise laboratories do, which ask for
    themselves whether they can. Raises SteelyardError: what is wrong, where, and what to do.
    """
    # Everything that passes until the first start is the first reading of whether the machine is quiet.
    gate = QuietGate(lambda: look(state_folder()))
    path = Path(study)
    root = Path(store)
    limits = {} if quiet_wait_s is None else {"quiet_wait_s": _wait_s(quiet_wait_s)}
    plugins = Plugins(path.parent, trust)
    read, plan = preflight.read_and_expand(path, plugins, scale, leave_out_missing=without_missing)
    preflight.refuse(preflight.runnable(path, read, plan)[1])
    settings, abilities = [trial.settings for trial in plan.trials], Abilities(plugins)
    # Under the lock of the store: nobody else adds trials to what is examined.
    with contextlib.ExitStack() as held:
        with _none_lost():
            writer = held.enter_context(StoreWriter(root, read.study.name))
            for line in damage_lines(writer.damages):
                say(line)
            if here:
                _in_a_loop(lambda: reclaim(_sites(settings, abilities), say))
            examined = preflight.examine(path, read, plan, abilities, root, here=here)
            preflight.refuse(examined.refusals)
            writer.conceal = secrets.concealer(settings) if here else writer.conceal
            processes = reading_commands.in_progress(state_folder())
            notes = (
                *check.notes(plan, examined, abilities),
                *other_limits(examined.history, examined.study.limits),
                *(f"process {each} {ANOTHER}" for each in processes),
            )
            for note in notes if here else ():
                say(f"note: {note}")
            if (bill := rent.bill(examined.study, plan, abilities)) and not agree(bill):
                raise StudyError(f"not agreed to: {bill}", "say yes at a terminal, or add --yes", key="site.name")
            options = _options(scale, without_missing=without_missing)
            writer.intend(examined.study, _text(path, options), plan)
            # Of this session, not of the study: nothing of it is written as if the file said so.
            measured = examined.study.model_copy(update={"limits": examined.study.limits.model_copy(update=limits)})
            resuming = command or ("steelyard", "run", str(path), "--store", str(root), *options)
            session = Session(
                measured, plan, examined.history, abilities, writer, gate, say, resuming, scaled=scale != 1.0,
                blocks=blocks,
            )  # fmt: skip
        try:
            yield session
        finally:
            session.over = True


Progress = Callable[[Live, Event], Literal["finish", "stop"] | None]
"""Takes the state of a session and the event that led to it. May ask it to finish the trial in flight and end, or to
stop now."""


def measure(
    study: str | Path,
    store: str | Path = "store",
    *,
    progress: Progress | None = None,
    trust: Trust = no_file,
    scale: float = 1.0,
    quiet_wait_s: float | None = None,
    without_missing: bool = False,
    say: Say = silence,
    agree: Agree = no_cost,
) -> SessionEnd:
    """Measure what is missing of a study, as `steelyard run` does: safe to repeat, safe to interrupt.

    Works in a notebook, too. Ctrl-C stops: the trial in flight is lost, everything is released, and the value returned
    says so. `progress` is called after each event, in the thread that measures; for the rest see `begin`. A wait for a
    quiet machine is passed to `say`. Raises SteelyardError, NotQuiet if the machine stays busy, and whatever `progress`
    raises.
    """
    begun = begin(
        study, store, trust=trust, scale=scale, quiet_wait_s=quiet_wait_s, without_missing=without_missing, say=say,
        agree=agree,
    )  # fmt: skip

    def show(live: Live, event: Event) -> Literal["finish", "stop"] | None:
        if isinstance(event, QuietAwaited):
            say(waiting_words(event.reasons, 0.0, event.wait_s))
        return None if progress is None else progress(live, event)

    with begun as session:
        _in_a_loop(lambda: session.measured(progress=show), session.stop)
    if session.raised is not None:
        raise session.raised
    return session.end()


def _in_a_loop(make: Callable[[], Coroutine[Any, Any, object]], stop: Callable[[], None] | None = None) -> None:
    """Run a coroutine to its end, in its own thread if this one has an event loop already, such as a
    notebook's. There, ctrl-C calls `stop`, if given, and so does the cancellation of the task that waits here: under
    asyncio.run, ctrl-C is no more than that."""
    loop = None
    with contextlib.suppress(RuntimeError):
        loop = asyncio.get_running_loop()
    if loop is None:
        asyncio.run(make())
        return
    task = asyncio.current_task()
    with ThreadPoolExecutor(1, "steelyard") as thread:
        running = thread.submit(lambda: asyncio.run(make()))
        while not running.done():
            try:
                wait([running], POLL_S)
                if stop is not None and task is not None and task.cancelling():
                    stop()
            except KeyboardInterrupt:
                if stop is None:
                    raise
                stop()
        running.result()


class _Called:
    """A view that calls a function. What that raises is not the laboratory's fault: it stops the session, and the
    function is not called again."""

    def __init__(self, progress: Progress, session: Session) -> None:
        self._progress, self._session = progress, session

    def show(self, live: Live, event: Event) -> None:
        """Pass the newest state on."""
        if self._session.raised is not None:
            return
        try:
            match self._progress(live, event):
                case None:
                    pass
                case "finish":
                    self._session.finish()
                case "stop":
                    self._session.stop()
                case other:
                    raise SteelyardError(f"progress returned {other!r:.100}", 'return None, "finish" or "stop"')
        except BaseException as error:  # raised again by whoever runs the session
            self._session.raised = error
            self._session.stop()


class _Announced:
    """A view that shows other commands whether the study measures or waits."""

    def __init__(self, session: reading_commands.AnnouncedSession) -> None:
        self._session = session

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state."""
        del event
        self._session.waits(live.quiet is not None)


async def _beat(view: Beats) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        view.beat()


def _sites(settings: Sequence[TrialSettings], abilities: Abilities) -> list[Site]:
    """The sites of a plan, of databases and of load nodes, each with its settings once."""
    by_section = {canonical(chosen.part("site", "load_site")): chosen for chosen in settings}
    return [site for _, chosen in sorted(by_section.items()) for site in abilities.sites(chosen)]


@contextlib.contextmanager
def _none_lost() -> Iterator[None]:
    """Turn what a disk refuses within the block into a FileError that says that no sealed trial is lost."""
    try:
        yield
    except (FileError, OSError) as error:
        failure = foreseen(error)
        if failure is None:
            raise
        if NONE_LOST not in failure.hint:
            failure.hint += f"; {NONE_LOST}"
        raise failure from (None if failure is error else error)


def _wait_s(quiet_wait_s: float) -> float:
    """The longest wait for a quiet machine, as a study file may have it. Raises StudyError."""
    try:
        return Limits(quiet_wait_s=quiet_wait_s).quiet_wait_s
    except ValidationError as error:
        raise from_validation(error, "limits", Limits)[0] from None


def _options(scale: float, *, without_missing: bool) -> list[str]:
    """Options of the command line that change how a study is read."""
    return [*(["--scale", f"{scale:g}"] if scale != 1.0 else ()), *(["--without-missing"] if without_missing else ())]


def _text(study_path: Path, options: Sequence[str]) -> str:
    """The study file, and on its first line with which options it was read."""
    text = study_path.read_text(encoding="utf-8-sig")
    return f"# run with {' '.join(options)}\n{text}" if options else text
