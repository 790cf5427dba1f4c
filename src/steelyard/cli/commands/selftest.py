"""`steelyard selftest stall`: a live proof that coordinated omission is avoided, with its verdict in words."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli.signature import BenchProtocol, Json
from steelyard.cli.terminal.help_text import Command, Group
from steelyard.cli.terminal.output import data_console, message_console, print_table, say
from steelyard.format import number
from steelyard.node.signals import interruptible
from steelyard.selftest.stall import IN_FLIGHT, QUANTILE, Asked, Line, Proof, prove
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard selftest stall", "1,000 operations per second for 20 s; the server stops for 2 s."),
    ("steelyard selftest stall --seconds 40 --stall 4 --json", "Longer, and as JSON."),
)
EXIT_DONE, EXIT_FAILED = 0, 1
LINES_A_HEADER = 20

app = typer.Typer(no_args_is_help=True, cls=Group)


@app.command(
    cls=Command,
    help="Stop a server in the middle of a load. Is everything sent, and is the stall measured? Exit code 1: no.",
)
def stall(
    seconds: Annotated[
        float, typer.Option("--seconds", min=4.0, max=3600.0, metavar="SECONDS", help="Length of the load.")
    ] = 20.0,
    rate: Annotated[
        float, typer.Option("--rate", min=1.0, max=1e5, metavar="RATE", help="Operations due per second.")
    ] = 1000.0,
    stall_s: Annotated[
        float, typer.Option("--stall", min=0.1, max=600.0, metavar="SECONDS", help="Duration of the stall.")
    ] = 2.0,
    protocol: BenchProtocol = "cql",
    as_json: Json = False,
) -> int:
    """Prove it. Returns 0, or 1 if the proof fails. Raises StudyError for sizes that prove nothing."""
    asked = Asked(protocol=protocol, seconds=seconds, rate_per_s=rate, stall_s=stall_s)
    asked.check()
    console = message_console()
    say(
        console,
        f"{asked.rate_per_s:,.0f} operations per second over {protocol} for {asked.seconds:g} s, {IN_FLIGHT} in flight "
        f"at most; in the middle the server is stopped for {asked.stall_s:g} s",
    )
    proof = asyncio.run(_prove(asked, console))
    if as_json:
        data = proof.model_dump() | {"error_fraction": proof.error_fraction, "checks": proof.checks}
        print(json_text({**data, "passed": proof.passed}, indent=1))
    else:
        draw(proof, data_console())
    return EXIT_DONE if proof.passed else EXIT_FAILED


async def _prove(asked: Asked, console: Console) -> Proof:
    seen = 0

    def tell(line: Line) -> None:
        nonlocal seen
        if seen % LINES_A_HEADER == 0:
            say(console, f"{'waiting':>37}{'p99, ms':>15}", style="dim")
            heads = f"{'s':>5}{'answered':>10}{'sent':>10}{'to be sent':>12}{'response':>10}{'service':>10}"
            say(console, heads, style="dim")
        seen += 1
        say(console, _text(line))

    with interruptible():
        return await prove(asked, tell)


def _text(line: Line) -> Text:
    text = Text(
        f"{line.second:>5}{line.rate_per_s:>8,.0f}/s{line.sent:>10,}{line.backlog:>12,}"
        f"{_ms(line.response_ms_p99):>10}{_ms(line.service_ms_p99):>10}"
    )
    if line.stopped:
        text.append("   stopped", style="yellow")
    return text


def _ms(value: float | None) -> str:
    return "-" if value is None else number(value, digits=3, trim=False)


def draw(proof: Proof, console: Console) -> None:
    """Table of figures by way of measuring, and the verdict."""
    percent = f"p{QUANTILE * 100:g}"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column, right in (
        (f"{percent} of the same stall", False),
        ("sent of due", True),
        ("ms", True),
        ("truth", True),
    ):
        table.add_column(column, justify="right" if right else "left")
    truth = _ms(proof.truth_ms_p99)
    sent = f"{proof.sent:,} of {proof.due:,}"
    table.add_row("response time: from when it was due", sent, _ms(proof.response_ms_p99), truth)
    table.add_row("service time: a tool that ignores due times", sent, _ms(proof.service_ms_p99), truth)
    closed = f"{proof.closed_sent:,} of {proof.due:,}"
    table.add_row("a closed loop, one at a time", closed, _ms(proof.closed_ms_p99), truth)
    print_table(table, console)
    console.print(
        Text(
            f"truth: {proof.stall_ms / 1000:.3f} s of standstill - {1 - QUANTILE:.0%} of {proof.seconds:g} s; measured "
            f"{proof.error_fraction:+.1%} from it. Service {percent} without the stall: "
            f"{_ms(proof.service_ms_p99_without)} ms."
        )
    )
    for what, holds in proof.checks.items():
        console.print(Text("✓ " if holds else "✗ ", style="green" if holds else "red").append(what, style="default"))
    console.print(Text(verdict(proof), style="bold"))


def verdict(proof: Proof) -> str:
    """The proof in one sentence."""
    if not proof.passed:
        failed = [what for what, holds in proof.checks.items() if not holds]
        return f"The proof fails. Not true: {'; '.join(failed)}."
    missing = proof.due - proof.closed_sent
    factor = proof.response_ms_p99 / max(proof.closed_ms_p99, 0.001)
    return (
        f"The proof holds: nothing was left out, and the stall is in the figures. The closed loop never sent "
        f"{missing:,} of the operations and reports a p99 that is {factor:,.0f} times too low."
    )
