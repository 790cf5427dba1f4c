"""`steelyard check STUDY`: validation, plan, cost and resolution of a study. Starts nothing, and executes a Python file
that the study names only if the user trusts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.plugin_trust import trust_of
from steelyard.cli.signature import Json, Margin, Scale, StoreRoot, StudyFile, Trusted, WithoutMissing, percent_of
from steelyard.cli.terminal.check_output import draw
from steelyard.cli.terminal.output import complain, data_console, message_console
from steelyard.lab.quiet import ProcessorReading, busy, look
from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.node.folders import state_folder
from steelyard.plan import gate_forecast
from steelyard.plan.check import Check, as_data, weigh
from steelyard.shown_text import json_text

EXAMPLES = (
    ("steelyard check studies/quickstart.toml", "Treatments, order, time, memory, disk."),
    ("steelyard check studies/richardson2017.toml --scale 0.01", "The same for a small trial run of the study."),
    ("steelyard check mine.toml --without-missing", "Without levels whose part does not exist yet."),
    ("steelyard check studies/quickstart.toml --json", "Everything as JSON."),
    ("steelyard check mine.toml --trust", "Execute the files that it names: plug-ins, jobs."),
)
EXIT_DONE, EXIT_WRONG, EXIT_MISSING = 0, 2, 5


def check(
    study_path: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Print the whole order of trials.")] = False,
    leave_out_missing: WithoutMissing = False,
    trust: Trusted = False,
    gate_percent: Annotated[
        float | None,
        typer.Option(
            "--gate",
            parser=percent_of,
            metavar="PERCENT",
            help="Forecast how many blocks a gate needs to detect a loss of this many percent, such as 5%.",
        ),
    ] = None,
    margin_percent: Margin = None,
    as_json: Json = False,
) -> int:
    """Print what a study would do; with `as_json` to stdout as one object. Returns 0, 2 if it is wrong, or 5 if it can
    be planned but names a part that does not exist yet."""
    before = look(state_folder())
    checked: Check | None = None
    refused: tuple[StudyError, ...]
    try:
        checked = weigh(study_path, store, scale, trust_of(trust), leave_out_missing=leave_out_missing)
        margin = _gate_margin(checked.study, gate_percent, margin_percent)
        if gate_percent is not None and margin is not None:
            gates = gate_forecast.forecasts(checked.study, checked.plan, checked.resolutions, gate_percent, margin)
            checked = replace(checked, gates=gates)
        checked = replace(checked, warnings=(*_busy(checked, before), *checked.warnings))
        refused = checked.refusals
    except StudyError as wrong:
        refused = wrong.errors
    if as_json:
        print(json_text(as_data(checked, refused), indent=1))
    elif checked is not None:
        draw(checked, data_console(), everything=everything)
    errors = message_console()
    missing = () if checked is None else checked.missing
    for error in (*missing, *refused):
        complain(errors, error)
    return EXIT_WRONG if refused else EXIT_MISSING if missing else EXIT_DONE


def _busy(checked: Check, before: ProcessorReading) -> tuple[str, ...]:
    if checked.cost is None:
        return ()
    sites = checked.abilities.sites(checked.runnable.trials[0].settings)
    return tuple(busy(checked.study, sites, before, state_folder()))


def _gate_margin(study: Study, change_percent: float | None, margin_percent: float | None) -> float | None:
    """The margin of a forecast, percent; None if none is asked for. Raises StudyError where there is none, or one that
    accepts the change."""
    if change_percent is None:
        if margin_percent is not None:
            raise StudyError("--margin is for --gate", "such as --gate 5% --margin 2%", key="--margin")
        return None
    margin = margin_percent or study.analysis.equivalence_margin_percent
    if margin is None:
        hint = "--margin 2%, or analysis.equivalence_margin_percent in the study"
        raise StudyError("--gate needs a margin", hint, key="--margin")
    if change_percent <= margin:
        message = f"--gate {change_percent:g}%: the margin of {margin:g}% accepts such a loss"
        raise StudyError(message, "give a loss greater than the margin", key="--gate")
    return margin
