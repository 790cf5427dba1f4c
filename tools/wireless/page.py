"""Page on wireless: tables and a figure of the simulated medium beside its model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.format import percent
from steelyard.report.basics.theme import DASHES, INK, MUTED, SERIES, SHAPES
from steelyard.report.draw import marks
from steelyard.report.draw.axes import Axis, measured
from steelyard.report.draw.plot import Layers, PlotArea, plot
from steelyard.report.draw.scales import Domain
from steelyard.report.draw.svg import Element, text
from tools.wireless.bianchi import model_n
from tools.wireless.cells import AGGREGATES, MANY, MEDIA, Medium, differences, simulated, throughput_mbit
from tools.wireless.scenarios import scenario_table

FIGURE = "wireless-bianchi.svg"
WORDS = Path(__file__).with_name("words.md")
WIDTH, HEIGHT, KEY = 700.0, 300.0, 270.0
CURVE = tuple(range(2, 51))
PROMISED, PROMISED_ALONE = 0.02, 0.005
"""Greatest difference from the model, and of one station from the arithmetic."""


def page() -> str:
    """The whole page in Markdown."""
    parts = {
        "verdict": verdict(),
        "table": table(MEDIA),
        "commands": commands(MEDIA),
        "aggregates": aggregates_table(),
        "scenarios": scenario_table(),
        "figure": f"![Throughput of saturated stations, simulated and by the model](../figures/{FIGURE})",
    }
    return WORDS.read_text(encoding="utf-8").format(**parts)


def kept() -> bool:
    """Whether every cell is as near to its model as the page says."""
    return all(abs(difference) <= promised for difference, promised in _differences_and_promises())


def _differences_and_promises() -> list[tuple[float, float]]:
    media = (*MEDIA, *AGGREGATES)
    stations = [number for medium in media for number in medium.stations]
    promises = [PROMISED_ALONE if number == 1 else PROMISED for number in stations]
    return list(zip(differences(media), promises, strict=True))


def verdict() -> str:
    """What is promised of the two tables, and whether it is so."""
    cells = _differences_and_promises()
    several = max(abs(difference) for difference, promised in cells if promised == PROMISED)
    alone = max(abs(difference) for difference, promised in cells if promised == PROMISED_ALONE)
    is_kept = "It is kept" if kept() else "**It is not kept**"
    return (
        f"Promised: within {PROMISED:.0%} of the model for 2 stations and more, within {PROMISED_ALONE:.1%} of exact "
        f"arithmetic for one. {is_kept} in all {len(cells)} cells of the two tables: "
        f"the greatest differences are {several:.1%} and {alone:.2%}."
    )


def table(media: Sequence[Medium]) -> str:
    """One row per medium and number of stations."""
    rows = [
        "| medium | stations | simulated, Mb/s | model, Mb/s | difference | a retry limit of 7 changes it by |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for medium in media:
        for number in medium.stations:
            off, limited = throughput_mbit(medium, number), throughput_mbit(medium, number, "7")
            model = medium.model.throughput_mbit(number)
            difference, change = percent_signed(off / model - 1), percent_signed(limited / off - 1)
            rows.append(f"| {medium.name} | {number} | {off:.3f} | {model:.3f} | {difference} | {change} |")
    return "\n".join(rows)


def commands(media: Sequence[Medium]) -> str:
    """The arguments that make each medium, as a list."""
    return "\n".join(f"    * {medium.name}: `{' '.join(medium.arguments)}`" for medium in media)


def aggregates_table() -> str:
    """The same of 802.11n, beside both variants of the model."""
    rows = [
        "| medium | stations | simulated, Mb/s | uncorrected model, Mb/s | difference | corrected model, Mb/s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for medium in AGGREGATES:
        aggregate = int(medium.arguments[-1])
        for number in medium.stations:
            off, model = throughput_mbit(medium, number), medium.model.throughput_mbit(number)
            corrected = model_n(aggregate, corrected=True).throughput_mbit(number)
            difference = percent_signed(off / model - 1)
            rows.append(f"| {medium.name} | {number} | {off:.2f} | {model:.2f} | {difference} | {corrected:.2f} |")
    return "\n".join(rows)


def percent_signed(fraction: float) -> str:
    """`+0.3%`, `−1.2%`, `0.0%`."""
    shown = f"{fraction:+.1%}".replace("-", "−")
    return "0.0%" if shown in {"+0.0%", "−0.0%"} else shown


def figure() -> str:
    """The picture: the model as lines, what was simulated as markers, over the number of stations."""
    shown = (*MEDIA, AGGREGATES[2])
    ticks = tuple((float(number), str(number)) for number in MANY)
    x = Axis(Domain(0.9, 56.0, "log"), "saturated stations", ticks)
    y = measured(Domain(0.0, 60.0), "payload of all stations, Mb/s", 6)

    def draw(area: PlotArea) -> Layers:
        drawn: list[Element | None] = []
        for place, medium in enumerate(shown):
            colour, shape = SERIES[place], SHAPES[place]
            height, left = area.top + 12 + 38 * place, area.right + 18
            drawn += [
                *_medium(area, medium, colour, shape),
                marks.line([(left, height - 4), (left + 26, height - 4)], colour, dash=_dash(medium)),
                marks.filled([marks.symbol(shape, left + 13, height - 4, 3.5)], colour),
                text(left + 32, height, medium.name, fill=INK),
                text(left + 32, height + 13, _largest(medium), fill=MUTED),
            ]
        return Layers(drawn)

    return plot(x, y, draw, width=WIDTH, height=HEIGHT, right=KEY).in_file() + "\n"


def _medium(area: PlotArea, medium: Medium, colour: str, shape: str) -> list[Element | None]:
    last = medium.stations[-1]
    curve = [area.at(number, medium.model.throughput_mbit(number)) for number in CURVE if number <= last]
    points = [area.at(number, throughput_mbit(medium, number)) for number in medium.stations]
    symbols = [marks.symbol(shape, *place, 3.5) for place in points]
    return [marks.line(curve, colour, dash=_dash(medium)), marks.filled(symbols, colour)]


def _dash(medium: Medium) -> str:
    return "" if medium.model.corrected else DASHES[1]


def _largest(medium: Medium) -> str:
    variant = "corrected" if medium.model.corrected else "uncorrected"
    greatest = max(abs(difference) for difference in differences([medium]))
    return f"model {variant}; at most {percent(greatest, digits=2)} from it"


__all__ = ["FIGURE", "aggregates_table", "commands", "figure", "kept", "page", "simulated", "table", "verdict"]
