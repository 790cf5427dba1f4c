"""Formatting of quantities for people: numbers, percentages, p-values, durations, times, sizes, plurals, treatments.

This is the only formatter for terminal, page and browser. Numbers have as many digits as their precision supports, a
real minus sign, commas between thousands and a percent sign without a space. The browser's script applies the same rule
to the numbers that it writes itself (`report/templates/format.js`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level

NONE: Final = "–"
"""Shown in place of a missing number."""

FORM: Final = 1
"""Version of this module's formats, raised with every change. A page states its version, so that texts in different
formats are not compared."""

FORM_NAME: Final = "steelyard-format"
"""Name of the page's meta element that holds the version."""

MINUS: Final = "−"
DIGITS: Final = 4
"""Significant digits of a number of unknown spread."""
SECONDS_FROM_MS: Final = 10_000.0
"""Times of at least this many milliseconds are shown in seconds."""
NODES: Final = ("nodes", "site.nodes")
"""Factors that count nodes."""
COUNTED: Final = {"nodes": "node", "threads": "thread"}
"""Factors whose levels are numbers of things."""
LEAST_P: Final = 0.001
MOST_P: Final = 0.995
ALPHABET: Final = 26
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
KIB: Final = 1024
SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class UnitScale:
    """A factor applied to values before they are shown, and the resulting unit."""

    factor: float
    unit: str

    def of(self, value: float | None) -> float | None:
        """A value in the shown unit."""
        return None if value is None else value * self.factor

    def estimate(self, estimate: Estimate) -> Estimate:
        """An estimate in the shown unit."""
        return estimate.model_copy(
            update={
                "value": estimate.value * self.factor,
                "low": self.of(estimate.low),
                "high": self.of(estimate.high),
                "unit": estimate.unit.replace("ms", self.unit, 1) if estimate.unit.startswith("ms") else estimate.unit,
            }
        )


def scale_for(unit: str, greatest: float) -> UnitScale:
    """Seconds instead of milliseconds if the numbers are large; other units unchanged."""
    if unit == "ms" and greatest >= SECONDS_FROM_MS:
        return UnitScale(0.001, "s")
    return UnitScale(1.0, unit)


def number(value: float | None, *, spread: float | None = None, digits: int = DIGITS, trim: bool | None = None) -> str:
    """A number; with `spread` (half-width of its interval, or standard deviation), to two significant digits of it.

    `trim=True` drops trailing zeros, for a number that stands alone; False keeps them, for a column. By default, those
    of a whole number are dropped unless `spread` makes them significant. Nothing but zeros has no sign.
    """
    if value is None or not math.isfinite(value):
        return NONE
    if spread is not None and spread > 0 and math.isfinite(spread):
        places = 1 - math.floor(math.log10(spread))
    elif value == 0:
        places = 0
    else:
        places = digits - 1 - math.floor(math.log10(abs(value)))
    places = max(0, min(places, 8))
    text = f"{value:,.{places}f}"
    if places and (trim or (trim is None and spread is None and float(value).is_integer())):
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", MINUS if text.strip("-0.") else "")


def interval(estimate: Estimate | None, resolution: float = 0.0) -> str:
    """`[low, high]`; empty if n does not support an interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    spread = max((estimate.high - estimate.low) / 2, resolution)
    return f"[{number(estimate.low, spread=spread)}, {number(estimate.high, spread=spread)}]"


def with_interval(estimate: Estimate | None, resolution: float = 0.0) -> str:
    """`value [low, high]`, with no finer digits than a tenth of the resolution."""
    if estimate is None:
        return NONE
    known = estimate.low is not None and estimate.high is not None
    spread = (estimate.high - estimate.low) / 2 if known else None  # type: ignore[operator]
    spread = max(spread or 0.0, resolution) if resolution else spread
    return f"{number(estimate.value, spread=spread)} {interval(estimate, resolution)}".strip()


def signed(value: float, *, digits: int = 2) -> str:
    """An estimate with its sign and `digits` significant digits: `+1.3`, `−31`, `−5.0`."""
    sign = MINUS if value < 0 else "+"
    return sign + number(abs(value), digits=digits, trim=False)


def p_value(p: float | None) -> str:
    """A p-value with two significant digits: `0.23`, `0.034`, `0.0034`; `< 0.001` below that, `> 0.99` at 0.995 or
    more.

    More digits carry no information: a replication of the study would give quite a different p-value. The limits are
    those of the AMA Manual of Style, 11th edition, section 19.5 (P < .001, P > .99).
    """
    if p is None or not math.isfinite(p):
        return NONE
    if p < LEAST_P:
        return "< 0.001"
    if p >= MOST_P:
        return "> 0.99"
    return f"{p:.{1 - math.floor(math.log10(p))}f}"


def p_equals(p: float | None) -> str:
    """A p-value as it follows the letter p in a sentence: `= 0.034`, `< 0.001`, `unknown`."""
    text = p_value(p)
    return "unknown" if text == NONE else text if text[0] in "<>" else f"= {text}"


def percent(fraction: float | None, *, digits: int = 2) -> str:
    """A fraction as a percentage with `digits` significant digits: `40%`, `0.41%`; whole at 10% or more."""
    if fraction is None or not math.isfinite(fraction):
        return NONE
    return f"{number(100 * fraction, digits=digits, trim=True)}%"


def confidence_text(confidence: float) -> str:
    """`95%`, `98.75%`: a confidence level."""
    return f"{100 * confidence:.4g}%"


def count(amount: int, singular: str, many: str = "") -> str:
    """`1 trial`, `48 trials`."""
    return f"{amount:,} {singular if amount == 1 else many or singular + 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def note_letter(place: int) -> str:
    """Unique letter of the note at an index, counted from 0: `a` to `z`, then `aa`, `ab`."""
    before, letter = divmod(place, ALPHABET)
    return (note_letter(before - 1) if before else "") + chr(ord("a") + letter)


def treatment_label(treatment: Mapping[str, Level], beside: Iterable[str] = (), *, full: bool = False) -> str:
    """A treatment in words, number of nodes last: `workload A, 450 threads, 3 nodes`.

    `beside`: further factors of the study, from whose names these must differ. `full`: names with their sections, for
    programs: `workload A, load.threads 450, 3 nodes`.
    """
    ordered = sorted(treatment.items(), key=lambda item: item[0] in NODES)
    names = (*treatment, *beside)
    return ", ".join(level_label(name, level, names, full=full) for name, level in ordered) or "all trials"


def level_label(name: str, level: Level, beside: Iterable[str] = (), *, full: bool = False) -> str:
    """One factor at one level: `3 nodes`, `workload A`, `8 threads`, `compression none`."""
    known = factor_label(name, () if full else beside, full=full)
    noun = COUNTED.get(known)
    return f"{known} {level}" if noun is None else count(level, noun) if isinstance(level, int) else f"{level} {noun}s"


def factor_label(name: str, beside: Iterable[str] = (), *, full: bool = False) -> str:
    """A factor without its section: `compression` of `system.compression`; with it if a factor `beside` it ends in the
    same word."""
    if name in NODES:
        return NODES[0]
    short = _ending(name)
    named = name if full or any(_ending(other) == short for other in beside if other != name) else short
    return "workload" if name == "workload.name" else named


def pair_label(name: str, level: Level, baseline: Level, beside: Iterable[str] = ()) -> str:
    """Two levels of a factor: `3 nodes against 1 node`, `compression none against lz4`."""
    first, second = (level_label(name, one, beside) for one in (level, baseline))
    return f"{first} against {second.removeprefix(factor_label(name, beside) + ' ')}"


def _ending(name: str) -> str:
    return "workload" if name == "workload.name" else name.rpartition(".")[2]


def moment(seconds: float | None) -> str:
    """A time in UTC, to the second, for everything that may be read in another time zone."""
    return NONE if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(seconds: float | None, now_s: float | None, *, to_the_second: bool = False) -> str:
    """A time by the clock of this machine: `14:03`, `14:03:21`; with the day unless it is that of `now_s`."""
    when, now = _local(seconds), _local(now_s)
    if when is None:
        return NONE
    time = f"{when:%H:%M:%S}" if to_the_second else f"{when:%H:%M}"
    if now is not None and when.date() == now.date():
        return time
    return f"{when:%a %d %b} {time}" if now is not None and when.year == now.year else f"{when:%Y-%m-%d} {time}"


def _local(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):
        # Not a time of any study: it comes from a file of unknown origin.
        return None


def duration(seconds: float | None) -> str:
    """A duration in its one or two largest units: `4.2 s`, `38 s`, `4 min 05 s`, `12 min`, `1 h 30 min`, `3 days 04 h`.
    A smaller unit that is 0 is left out."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    return _short(max(0.0, seconds)) if seconds < 90 * MINUTE_S - 30 else _long(seconds)


def _short(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    if seconds < 10 * MINUTE_S - 0.5:
        return _two_units(round(seconds), MINUTE_S, "min", "s")
    return f"{round(seconds / MINUTE_S)} min"


def _long(seconds: float) -> str:
    hours = round(seconds / HOUR_S)
    return _two_units(round(seconds / MINUTE_S), 60, "h", "min") if hours < 72 else _two_units(hours, 24, "days", "h")


def _two_units(amount: int, size: int, greater: str, smaller: str) -> str:
    """An amount of the smaller unit, `size` of which make one of the larger."""
    rest = amount % size
    return f"{amount // size:,} {greater}" + (f" {rest:02d} {smaller}" if rest else "")


def forecast(seconds: float | None) -> str:
    """An estimated duration, coarsely rounded: `4.2 s`, `50 s`, `40 min`, `2 h 50 min`, `3 days`. From one hour, tens
    of minutes; from three days, whole days."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    step_s = 0.1
    for from_s, wider_s in ((9.95, 1), (89.5, MINUTE_S), (HOUR_S - 30, 10 * MINUTE_S), (3 * DAY_S, DAY_S)):
        if seconds >= from_s:
            step_s = wider_s
    return duration(round(seconds / step_s) * step_s)


def brief_forecast(seconds: float | None) -> str:
    """The same for a column: `50 s`, `40 min`, `5.5 h`, `42 h`, `3 days`."""
    if seconds is None or not HOUR_S - 30 <= seconds < 3 * DAY_S:
        return forecast(seconds)
    return f"{number(seconds / HOUR_S, digits=2, trim=True)} h"


def data_size(size: float | None) -> str:
    """A number of bytes with three significant digits: `512 MiB`, `1.5 GiB`."""
    if size is None or not math.isfinite(size):
        return NONE
    power = 0
    while power < len(SIZES) - 1 and abs(size) >= KIB ** (power + 1):
        power += 1
    return f"{number(size / KIB**power, digits=3, trim=True)} {SIZES[power]}"


def data_rate(bytes_per_s: float | None) -> str:
    """Bytes per second in decimal units, as disks and networks are sold: `1.5 MB/s`, `120 MB/s`, `0.02 MB/s`."""
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return NONE
    return f"{number(bytes_per_s / 1e6, digits=2, trim=True)} MB/s"
