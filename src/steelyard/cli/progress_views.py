"""Progress views of a study: a live screen for a terminal, plain log lines for everything else.

Both draw the one state of `steelyard.progress.state` and write to stderr.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live as Screen
from rich.padding import Padding
from rich.text import Text

from steelyard.cli.terminal.live_cells import LiveCells
from steelyard.events.base import Event
from steelyard.events.kept import TrialSealed
from steelyard.events.shown import PhaseEntered
from steelyard.format import count, data_rate, data_size, number, percent, treatment_label
from steelyard.model.trial import Phase
from steelyard.progress.event_words import event_line, ms, of_words, phase_parts, phase_text, size_parts
from steelyard.progress.state import (
    CLEANING_UP,
    Live,
    NodeReadings,
    beginning,
    expected_finish,
    newest_of_nodes,
    slowest,
    throughput,
)

STILL_S = (5.0, 10.0, 20.0, 30.0)
"""Silence of a plain log after which it says what goes on: the first time, the second, ...; the last from then on."""
FINISH_S = 60.0
"""Interval at which a plain log repeats the expected finish."""
SPARK = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24
"""Seconds of load that are drawn."""
TROUBLES_SHOWN = 3
LINES_EACH = 3
"""Lines of a trouble, and of the current activity, at most: they must not push the cells off the screen."""
SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600


def _head(live: Live, now_s: float) -> Text:
    """The study and how far it is; below, the time it took and will take."""
    text = Text()
    text.append(live.study, style="bold")
    parts = [f"block {live.block}{of_words(live)}{live.blocks}"] if live.block else []
    if live.number:
        parts.append(f"trial {live.number}{of_words(live)}{live.total}")
    text.append("   " + " · ".join(parts))
    times = [f"elapsed {_stopwatch(now_s - live.begun_s)}"] if live.begun_s is not None else []
    if end := expected_finish(live, now_s):
        times.append(f"ETA {end}")
    text.append("\n time   ", style="dim")
    text.append(", ".join(times))
    return text


def _stopwatch(seconds: float) -> str:
    """A running length of time: `0:07`, `1:30`, `1:02:03`."""
    whole = math.floor(max(0.0, seconds))
    hours, minutes = whole // SECONDS_PER_HOUR, whole // SECONDS_PER_MINUTE % SECONDS_PER_MINUTE
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _now(live: Live, now_s: float) -> Text:
    again = f" (attempt {live.trial.attempt})" if live.trial is not None and live.trial.attempt > 1 else ""
    phase, activity = phase_parts(live, now_s)
    text = Text(" now    ", style="dim")
    if live.treatment:
        text.append(f"{treatment_label(live.treatment)}{again}   ", style="cyan")
    text.append(phase)
    if activity:
        text.append(f"\n{activity}")
    return text


def _size(live: Live) -> Text | None:
    """Actual and desired size of a cluster under a policy."""
    size, why = size_parts(live)
    return Text.assemble((" nodes  ", "dim"), size, f": {why}" if why else "") if size else None


def _load(live: Live) -> Text:
    """Throughput of all load nodes together, times of the slowest of them."""
    text = Text(" load   ", style="dim")
    newest = newest_of_nodes(live.current_seconds)
    rates = list(throughput(live.current_seconds).values())
    if not newest or not rates:
        text.append("-")
        return text
    times = list(slowest(live.current_seconds, "response_ms_p99").values())
    response, service = (
        max((value for second in newest.values() if (value := getattr(second, name)) is not None), default=None)
        for name in ("response_ms_p99", "service_ms_p99")
    )
    busy = max((second.cpu_fraction or 0.0 for second in newest.values()), default=0.0)
    text.append(f"{number(rates[-1], digits=3) + ' op/s':<14}{spark(rates):<{SPARK_WIDTH}}  ")
    text.append(f"generator at {percent(busy)} of a core")
    if errors := sum(second.errors for second in newest.values()):
        text.append(f"  {count(errors, 'error')}", style="bold red")
    text.append("\n p99    ", style="dim")
    text.append(f"{ms(response):<14}{spark(times):<{SPARK_WIDTH}}  service {ms(service)}")
    return text


def _nodes(live: Live) -> RenderableType:
    """Nodes side by side, as many as fit on a line."""
    parts = [Text.assemble((name, "bold"), " ", _readings(name, node)) for name, node in sorted(live.nodes.items())]
    return Padding(Columns(parts, padding=(0, 3)), (0, 0, 0, 1))


def _readings(name: str, node: NodeReadings) -> str:
    user, system = (node.values.get(f"node_cpu_{kind}_cores") for kind in ("user", "system"))
    memory = node.values.get("node_memory_rss_bytes")
    written = node.values.get("node_disk_write_bytes_per_s")
    words = []
    if user is not None and system is not None:
        words.append(f"{user + system:4.2f} cores")
    if memory is not None:
        words.append(data_size(memory))
    if written is not None and name.startswith("n"):
        words.append(f"{data_rate(written)} written")
    return " ".join(words)


def spark(values: Sequence[float]) -> str:
    """A line of small bars, from 0 to the largest value, of the newest values."""
    shown = values[-SPARK_WIDTH:]
    top = max(shown, default=0.0)
    if top <= 0:
        return ""
    return "".join(SPARK[min(len(SPARK) - 1, int(value / top * (len(SPARK) - 1) + 0.5))] for value in shown)


@dataclass(frozen=True)
class _Hanging:
    """A text of few lines, all but the first indented."""

    text: Text
    indent: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self.text.wrap(console, options.max_width - self.indent)
        for place, line in enumerate(lines[:LINES_EACH]):
            line.rstrip()
            cut = "..." if place == LINES_EACH - 1 and len(lines) > LINES_EACH else ""
            yield Text(" " * self.indent if place else "").append_text(line).append(cut)


class LiveView:
    """One screen that is redrawn in place."""

    def __init__(self, console: Console, cells: LiveCells, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._cells = cells
        self._live = beginning(clock())
        self.note = ""
        self._screen = Screen(self, console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> LiveView:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.stop()

    def lines(self) -> tuple[Text, ...]:
        """Current activity: study and time, cell and phase, load."""
        now_s, live = self._clock(), self._live
        return _head(live, now_s), _now(live, now_s), _load(live)

    def __rich__(self) -> RenderableType:
        live = self._live
        head, now, load = self.lines()
        parts: list[RenderableType] = [head, _Hanging(now, 8)]
        if (size := _size(live)) is not None:
            parts.append(_Hanging(size, 8))
        parts.append(load)
        if live.nodes:
            parts.append(_nodes(live))
        if self.note:
            parts.append(Text(f" {self.note}", style="bold reverse"))
        for trouble in live.troubles[-TROUBLES_SHOWN:]:
            parts.append(_Hanging(Text(f" ! {trouble.message}: {trouble.hint}", style="yellow"), 3))
        if live.cells:
            parts.append(self._cells.table(live))
        return Group(*parts)

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state; the next beat draws it."""
        self._live = live
        if isinstance(event, TrialSealed) and event.record is not None:
            self._cells.add(event.record)

    def beat(self) -> None:
        """Time has passed: redraw the screen."""
        self._screen.refresh()


class PlainView:
    """One line per event that matters, with the time of day; never silent for long."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.time) -> None:
        self.note = ""
        self._write = write
        self._clock = clock
        self._spoke_s = clock()
        self._reminders = 0
        """Lines since the last event that said what goes on."""
        self._finish_s = float("-inf")
        """When the expected finish was said."""
        self._live = beginning(self._spoke_s)
        self._phase: Phase | None = None
        """The phase of the last line, if that was about one."""
        self._before: Phase | None = None
        """The newest phase."""

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state, and write a line if the event matters or if it has been quiet for long."""
        self._live, now_s = live, self._clock()
        line = event_line(live, event)
        if isinstance(event, PhaseEntered):
            line, self._before = self._entered(event, line), event.phase
        elif line is not None:
            self._phase = None
        end = expected_finish(live, live.t_s) if isinstance(event, TrialSealed) and line else ""
        if end and (end == CLEANING_UP or now_s - self._finish_s >= FINISH_S):
            line, self._finish_s = f"{line}; expected finish {end}", now_s
        if line is None:
            self.beat()
        else:
            self._reminders = 0
            self._say(line, now_s)

    def _entered(self, event: PhaseEntered, line: str | None) -> str | None:
        """The line of a phase: once where it is entered again, such as for facts of the nodes after they have their
        data; a cluster that is started again once it is filled is another matter (decision 0006)."""
        again = event.phase is Phase.DEPLOY and self._before is Phase.WIPE and self._phase is Phase.POPULATE
        facts = event.phase is Phase.DEPLOY and self._phase is Phase.POPULATE and not again
        if line is None or facts or event.phase == self._phase:
            return None
        self._phase = event.phase
        return f"{line}: starting the cluster again on the filled data" if again else line

    def beat(self) -> None:
        """Time has passed: report the current activity after a long silence."""
        now_s = self._clock()
        limit_s = STILL_S[min(self._reminders, len(STILL_S) - 1)] if self._live.quiet is None else STILL_S[-1]
        if (self._live.phase or self._live.quiet) is not None and now_s - self._spoke_s >= limit_s:
            self._reminders += 1
            self._say(f"  still {phase_text(self._live, now_s)}", now_s)

    def _say(self, line: str, now_s: float) -> None:
        self._write(f"{datetime.fromtimestamp(now_s):%H:%M:%S} {line}")
        self._spoke_s = now_s
