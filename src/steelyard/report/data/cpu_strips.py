"""A strip per node under a trial's course: which node was busy when, without a panel for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from steelyard.format import number
from steelyard.report.basics.theme import BAND, INK
from steelyard.report.draw.plot import Axis, Drawing

CPU: Final = ("node_cpu_user_cores", "node_cpu_system_cores")
READING_S: Final = 1.0
"""What one reading of a probe covers: the second before it."""
MOST_STRIPS: Final = 12
STRIP_PX: Final = 11
GAP_PX: Final = 3
TITLE_PX: Final = 34
SHADES: Final = 6
NAME_LETTERS: Final = 7


@dataclass(frozen=True)
class Strip:
    """One node: the cores that it used in each window, None where it gave no reading."""

    node: str
    cores: tuple[float | None, ...]


def of(samples: pl.DataFrame, begun_s: float, step_s: float, windows: int) -> tuple[Strip, ...]:
    """CPU of every node in each window, from samples with columns t_s, node, metric, value; by name of node."""
    cpu = samples.filter(pl.col("metric").is_in(CPU))
    if cpu.is_empty():
        return ()
    place = ((pl.col("t_s") - READING_S / 2 - begun_s) / step_s).floor().cast(pl.Int64).alias("window")
    seconds = cpu.group_by("node", "t_s", maintain_order=True).agg(pl.col("value").sum()).with_columns(place)
    means = seconds.group_by("node", "window", maintain_order=True).agg(pl.col("value").mean())
    found: dict[str, list[float | None]] = {}
    for node, window, cores in means.iter_rows():
        values = found.setdefault(str(node), [None] * windows)
        if 0 <= window < windows:
            values[window] = float(cores)
    named = sorted(found, key=lambda node: (len(node), node))
    return tuple(Strip(node, tuple(found[node])) for node in named if any(one is not None for one in found[node]))


def height(strips: Sequence[Strip]) -> float:
    """Pixels that the strips take, their title included; 0 where there is none."""
    shown = min(len(strips), MOST_STRIPS)
    return TITLE_PX + shown * (STRIP_PX + GAP_PX) if shown else 0.0


def draw(drawing: Drawing, strips: Sequence[Strip], time: Axis, top: float, left: float, step_s: float) -> None:
    """The strips, one below the other: darker where the node used more of what the busiest used at its busiest."""
    shown = strips[:MOST_STRIPS]
    most = max((cores for strip in shown for cores in strip.cores if cores is not None), default=0.0)
    if not shown:
        return
    drawing.text(0, top + 22, f"CPU of each node, darkest at {number(most, digits=2)} cores")
    for index, strip in enumerate(shown):
        upper = top + TITLE_PX + index * (STRIP_PX + GAP_PX) - 4
        drawing.text(left - 5, upper + STRIP_PX - 2, strip.node[-NAME_LETTERS:], anchor="end")
        drawing.rectangle(time.first_px, upper, time.last_px, upper + STRIP_PX, BAND)
        drawing.marks(time.first_px, upper, time.last_px, upper + STRIP_PX)
        shades: dict[int, list[str]] = {}
        for first, last, shade in _runs(strip.cores, most):
            from_px, to_px = time.of(first * step_s), time.of(last * step_s)
            shades.setdefault(shade, []).append(f"M{from_px:.1f},{upper + STRIP_PX / 2:.1f}H{to_px:.1f}")
        for shade, pieces in sorted(shades.items()):
            drawing.bars(pieces, INK, width=STRIP_PX, opacity=round(0.85 * (shade + 1) / SHADES, 2))
        drawing.done()


def _runs(cores: Sequence[float | None], most: float) -> list[tuple[int, int, int]]:
    """Windows of one shade that follow each other, as first, one after the last, shade; idle ones are left out."""
    found: list[tuple[int, int, int]] = []
    for index, value in enumerate(cores):
        if value is None or most <= 0 or value < most / SHADES / 4:
            continue
        shade = min(SHADES - 1, int(SHADES * value / most))
        if found and found[-1][1] == index and found[-1][2] == shade:
            found[-1] = (found[-1][0], index + 1, shade)
        else:
            found.append((index, index + 1, shade))
    return found
