"""Output of `check --gate`: blocks that a gate over each factor of a study needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from steelyard.cli.terminal.output import titled_table
from steelyard.format import count, number, percent
from steelyard.plan.gate_forecast import MOST_BLOCKS, POWER, GateForecast


def tables(forecasts: Sequence[GateForecast]) -> Iterator[Table]:
    """A table for each factor."""
    for item in forecasts:
        loss, margin = (f"{number(one, digits=3, trim=True)}%" for one in (item.change_percent, item.margin_percent))
        cells, planned = count(item.comparisons, "comparison"), count(item.blocks, "block")
        title = f"Gate over {item.factor}, {cells}, margin {margin}"
        table = titled_table(title, "", "chance", "")
        needed = f"{planned}; {_needed(item.blocks_needed)}"
        table.add_row(f"a loss of {loss} is detected", percent(item.power), needed)
        table.add_row("an equal build passes", percent(item.equal_passes), f"{planned}; {_needed(item.blocks_to_pass)}")
        if item.found_percent is not None:
            least = f"a loss of {number(item.found_percent, digits=2)}% is detected"
            table.add_row(least, percent(POWER), planned)
        table.caption = f"with a CV of the ratios of pairs of {percent(item.cv)} ({item.cv_source})"
        table.caption_justify = "left"
        yield table


def _needed(blocks: int | None) -> str:
    """`14 blocks for 95%`."""
    needed = f"more than {MOST_BLOCKS:,} blocks" if blocks is None else count(blocks, "block")
    return f"{needed} for {percent(POWER)}"
