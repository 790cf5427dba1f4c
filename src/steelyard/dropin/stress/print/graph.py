"""HTML graph page of `-graph file=`: readable offline; further loads are appended to it.

The page holds its numbers as cassandra-stress's pages do (between two marks, as `stats = {...};`). So a page of that
tool can be continued, and a script can read both.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from steelyard.atomic_file import write_output
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.parse.settings import Graph
from steelyard.dropin.stress.print.output import LABELS, header

BEGIN, END = "/* stats start */\nstats = ", ";\n/* stats end */"
STATS = re.compile(re.escape(BEGIN) + r"(.*)" + re.escape(END), re.DOTALL)
RUNNING = re.compile(r"Running .* with ([0-9]+) threads .*")
SECRET = re.compile(r"password=\S*")
CHARTS = (("op/s", 2, "operations per second"), ("mean", 5, "mean, ms"), (".99", 8, "99th percentile, ms"))
"""Label, column and title of each chart."""
TIME, TYPE = 11, 0
TOTAL = ("total", None)
"""Row types that are drawn; cassandra-stress stores no type for them."""
WIDTH, HEIGHT, MARGIN = 720, 220, 48
COLOURS = ("#4269d0", "#c4511d", "#2f8f5b", "#9c6b4e", "#a463f2", "#6b6b6b", "#b8860b", "#d64f7f")


def parsed(lines: Sequence[str], graph: Graph, command: str) -> list[dict[str, Any]]:
    """The loads in a log: intervals as numbers, results by label."""
    loads: list[dict[str, Any]] = []
    load: dict[str, Any] | None = None
    threads, several, results = "", False, False
    for line in lines:
        several = several or line.startswith("Thread count was not specified")
        if match := RUNNING.fullmatch(line):
            threads = match[1]
        if line == header():
            revision = f"{graph.revision} - {threads} threads" if several else graph.revision
            load = {"metrics": list(LABELS), "test": graph.operation, "revision": revision}
            load |= {"command": command, "intervals": []}
            loads.append(load)
            results = False
        elif line == "Results:":
            results = True
        elif load is not None and results and ":" in line:
            label, _, value = line.partition(":")
            load[label.strip().lower()] = value.strip()
        elif load is not None and not results and line.count(",") == len(LABELS) - 1:
            first, *others = (cell.strip() for cell in line.split(","))
            load["intervals"].append([first, *(_number(cell) for cell in others)])
    return loads


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    # JSON has no NaN.
    return value if math.isfinite(value) else None


def check(path: Path) -> None:
    """Check before the load that the page can be written. Raises Refused."""
    _existing(path)
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not above.is_dir() or not os.access(path if path.exists() else above, os.W_OK):
        raise Refused("-graph file=", str(path), "it cannot be written", "a file to write")


def write(graph: Graph, words: Sequence[str], lines: Sequence[str]) -> None:
    """Create the page or append to it. Raises Refused if the file is not such a page, or cannot be written."""
    path = graph.file
    assert path is not None
    command = SECRET.sub("password=*******", " ".join(words))
    stats = _existing(path)
    stats["title"] = graph.title or f"cassandra-stress - {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
    stats["stats"] = [*stats.get("stats", []), *parsed(lines, graph, command)]
    try:
        write_output(path, page(stats))
    except OSError as error:
        raise Refused("-graph file=", str(path), error.strerror or "cannot be written", "a file to write") from None


def _existing(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        match = STATS.search(path.read_text(encoding="utf-8"))
        stats = json.loads(match[1]) if match else None
    except OSError as error:
        raise Refused("-graph file=", str(path), error.strerror or "cannot be read", "a file to write") from None
    except ValueError:
        stats = None
    if not isinstance(stats, dict):
        raise Refused(
            "-graph file=", str(path), "it is not a page of -graph", "such a page, or a file that does not exist yet"
        )
    return stats


def page(stats: Mapping[str, Any]) -> str:
    """The HTML document."""
    title = html.escape(str(stats["title"]))
    # `</` inside a script would end it.
    data = json.dumps(stats, allow_nan=False).replace("</", "<\\/")
    charts = "\n".join(_chart(stats["stats"], column, text) for _, column, text in CHARTS)
    rows = "\n".join(_row(load, index) for index, load in enumerate(stats["stats"]))
    heads = "".join(f"<th>{name}</th>" for name in ("", "revision", "test", *(label for label, _ in RESULTS)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<script>\n{BEGIN}{data}{END}\n</script></head>\n<body><h1>{title}</h1>\n{charts}\n"
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>\n</body></html>\n"
    )


RESULTS = (
    ("op rate", "op rate"),
    ("mean", "latency mean"),
    ("median", "latency median"),
    ("95%", "latency 95th percentile"),
    ("99%", "latency 99th percentile"),
    ("99.9%", "latency 99.9th percentile"),
    ("max", "latency max"),
    ("errors", "total errors"),
    ("time", "total operation time"),
)
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.3rem}table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}"
    "th,td{text-align:right;padding:.2rem .6rem;border-bottom:1px solid #ddd}svg{width:100%;height:auto}"
    "svg text{font-size:11px;fill:#555}"
)


def _row(load: Mapping[str, Any], index: int) -> str:
    colour = COLOURS[index % len(COLOURS)]
    # Only the lines before the figures of each operation.
    values = (str(load.get(key, "")).partition("[")[0].strip() for _, key in RESULTS)
    cells = [f'<td style="color:{colour}">&#9632;</td>']
    cells += [f"<td>{html.escape(str(value))}</td>" for value in (load.get("revision"), load.get("test"), *values)]
    return f"<tr>{''.join(cells)}</tr>"


def _chart(loads: Sequence[Mapping[str, Any]], column: int, title: str) -> str:
    """Lines of all loads over time."""
    series = []
    for load in loads:
        rows = [row for row in load.get("intervals", []) if row[TYPE] in TOTAL]
        series.append([(row[TIME], row[column]) for row in rows if row[TIME] is not None and row[column] is not None])
    points = [point for one in series for point in one]
    right = max((x for x, _ in points), default=0) or 1
    top = max((y for _, y in points), default=0) or 1
    across, up = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    lines = []
    for index, line in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        # A single point is drawn as a dot.
        at = " ".join(
            f"{MARGIN + across * x / right:.1f},{HEIGHT - MARGIN - up * y / top:.1f}"
            for x, y in (line if len(line) > 1 else line * 2)
        )
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" stroke-linecap="round" points="{at}"/>'
        )
    base = HEIGHT - MARGIN
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title} over seconds">'
        f'<text x="{MARGIN}" y="18">{title}</text><path d="M{MARGIN} {MARGIN}V{base}H{WIDTH - MARGIN}" fill="none" '
        f'stroke="#999"/><text x="{MARGIN - 6}" y="{MARGIN + 4}" text-anchor="end">{top:g}</text>'
        f'<text x="{MARGIN - 6}" y="{base}" text-anchor="end">0</text>'
        f'<text x="{WIDTH - MARGIN}" y="{base + 16}" text-anchor="end">{right:g} s</text>{"".join(lines)}</svg>'
    )
