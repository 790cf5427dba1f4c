"""`steelyard calibrate`: measure the ceilings of this machine's load engine, and keep them for later verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli.signature import BenchProtocol, Json
from steelyard.cli.terminal.output import data_console, message_console, print_table, say
from steelyard.format import data_size
from steelyard.model.calibration import Calibration, Ceiling, Slip
from steelyard.model.study import Limits
from steelyard.node import calibration as kept
from steelyard.node.folders import state_folder
from steelyard.node.signals import interruptible
from steelyard.selftest import calibrate as engine
from steelyard.selftest.calibrate import Step
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard calibrate", "Measure the load engine for 20 s over CQL, and keep the result; --protocol has others."),
    ("steelyard calibrate --seconds 60", "The same for longer, on a machine that is not quiet."),
)
EXIT_DONE = 0
FULL_FRACTION = 0.9
"""Below this share of its thread the generator was not the slower one, and its ceiling is extrapolated."""
SLIP_TARGET_MS = 0.2


def calibrate(
    seconds: Annotated[
        float, typer.Option("--seconds", min=5.0, max=3600.0, metavar="SECONDS", help="Total measuring time.")
    ] = 20.0,
    protocol: BenchProtocol = "cql",
    as_json: Json = False,
) -> int:
    """Measure, keep, print. Returns 0; raises EngineError if it cannot be measured."""
    console = message_console()
    calibration = asyncio.run(_measure(protocol, seconds, console))
    where = kept.path_in(state_folder(), protocol)
    kept.write(where, calibration)
    if as_json:
        print(json_text(as_data(calibration), indent=1))
    else:
        draw(calibration, data_console())
    say(console, f"kept in {where}", style="dim")
    return EXIT_DONE


async def _measure(protocol: str, seconds: float, console: Console) -> Calibration:
    with interruptible(), _progress(console, protocol, seconds) as tell:
        return await engine.calibrate(protocol, seconds, tell)


@contextmanager
def _progress(console: Console, protocol: str, seconds: float) -> Iterator[Any]:
    """One line per step; at a terminal, with the current measurement."""
    say(console, f"calibrating this machine's load engine over {protocol}, about {seconds:.0f} s")
    status = console.status("starting the null server")

    def tell(step: Step) -> None:
        status.update(f"{step.name}, {step.seconds:.1f} s")
        if step.result is None:
            if not console.is_terminal:
                say(console, f"  {step.name} ...")
        elif isinstance(step.result, Ceiling):
            say(console, f"  {step.name:<34}{step.result.measured_per_s:>11,.0f} op/s")
        else:
            say(console, f"  {step.name:<34}{step.result.pacing_ms_p50 * 1000:>11,.0f} us late")

    with status:
        yield tell


def as_data(calibration: Calibration) -> dict[str, Any]:
    """The calibration with its derived figures."""
    data = calibration.model_dump(mode="json")
    for row, ceiling in zip(data["ceilings"], calibration.ceilings, strict=True):
        row["per_s"] = ceiling.per_s
    return data


def draw(calibration: Calibration, console: Console) -> None:
    """The table, with an explanation."""
    limit = Limits().generator_ceiling_fraction
    first, table = (
        f"one worker, null server, {calibration.protocol}",
        Table(box=None, padding=(0, 2, 0, 0), header_style="dim"),
    )
    for column in (first, "op/s", "busy", "ceiling", "CPU us", "marked from"):
        table.add_column(column, justify="left" if column.startswith("one") else "right", no_wrap=True)
    for ceiling in calibration.ceilings:
        table.add_row(*_row(ceiling, limit))
    print_table(table, console)
    console.print(Text(_meaning(calibration, limit)))
    for line in (*kept.doubts(calibration), *_remarks(calibration)):
        say(console, Text(f"! {line}", style="yellow"))


def _row(ceiling: Ceiling, limit: float) -> tuple[str, ...]:
    return (
        f"{ceiling.kind}s, {ceiling.in_flight} in flight",
        f"{ceiling.measured_per_s:,.0f}",
        f"{ceiling.busiest_thread_fraction:.0%}",
        f"{ceiling.per_s:,.0f}",
        f"{ceiling.cpu_us_per_operation:.2f}",
        f"{limit * ceiling.per_s:,.0f}",
    )


def _meaning(calibration: Calibration, limit: float) -> str:
    slip: Slip = calibration.slip
    when = datetime.fromtimestamp(calibration.made_s)
    return (
        f"timer slip at {slip.rate_per_s:,.0f} op/s, open loop: {slip.pacing_ms_p50 * 1000:,.0f} us at the median, "
        f"{slip.pacing_ms_p99 * 1000:,.0f} us at p99 of {slip.operations:,} operations; "
        f"memory {data_size(calibration.memory_bytes)}\n"
        f"1 KB over {calibration.protocol}; server and generator share this machine's cores; CPU is the generator's; "
        f"ceiling = op/s / busy share of the worker's thread. A trial that reaches {limit:.0%} of it is marked "
        f"generator-bound: beyond that the generator adds more than its own cost to every operation.\n"
        f"{calibration.machine.get('cpu_model', '')}, {calibration.machine.get('cores', '?')} cores, "
        f"kernel {calibration.machine.get('kernel', '?')}, agent {calibration.agent}, {when:%Y-%m-%d %H:%M}"
    )


def _remarks(calibration: Calibration) -> list[str]:
    """Explanation of figures that are not as expected."""
    remarks = []
    if any(one.busiest_thread_fraction < FULL_FRACTION for one in calibration.ceilings):
        remarks.append("where busy is below 100% the server or another program took turns: the ceiling is extrapolated")
    if calibration.slip.pacing_ms_p99 > SLIP_TARGET_MS:
        late = f"{calibration.slip.pacing_ms_p99 * 1000:,.0f} us late or later"
        remarks.append(f"one operation in a hundred left {late}: every open loop's p99 includes this")
    return remarks
