"""`steelyard check STUDY`: validation, plan, cost and resolution of a study. Starts nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steelyard.cli.noise_floor import floor_for
from steelyard.cli.signature import Json, Margin, Scale, StoreRoot, StudyFile, WithoutMissing, percent_of
from steelyard.cli.terminal import gate_forecast_output
from steelyard.cli.terminal.load_output import explanation_sentence, explanation_table
from steelyard.cli.terminal.output import complain, data_console, message_console, print_table
from steelyard.format import clock, count, data_size, duration, forecast
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping_rule import rule_of
from steelyard.lab.quiet import Look, disturbed_since, look
from steelyard.model.errors import StudyError
from steelyard.model.named_level import level_key
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node.folders import cache_folder, state_folder
from steelyard.plan import (
    Machine,
    PlanEstimate,
    Resolution,
    gate_forecast,
    load_feasibility,
    preflight,
    resolution,
    stopping_forecast,
    warnings,
)
from steelyard.plan.abilities import Abilities, assumptions
from steelyard.plan.gate_forecast import GateForecast
from steelyard.plan.machine import read_machine
from steelyard.plan.stopping_simulation import Expected
from steelyard.plugin import Plugins
from steelyard.plugin_factory import make_site, make_workload
from steelyard.progress.reason_words import short
from steelyard.site.base import on_this_machine
from steelyard.study.treatments import fraction_of, treatments_of
from steelyard.workload.base import Explains, Explanation

EXIT_DONE, EXIT_WRONG, EXIT_MISSING = 0, 2, 5
ENTRIES_SHOWN = 30
TREATMENTS_SHOWN = 40
BYTES_PER_MIB = 2**20


@dataclass(frozen=True)
class Check:
    """Everything that `check` found out."""

    study: Study
    plan: Plan
    cost: PlanEstimate | None
    """Of the trials whose parts exist; None if there are none."""
    machine: Machine
    resolutions: tuple[Resolution, ...]
    warnings: tuple[str, ...]
    refusals: tuple[StudyError, ...]
    floor: FoundFloor
    """The kept noise floor that it would be judged against."""
    floor_words: str
    plugins: Plugins
    """Find what the study names."""
    until: tuple[Expected, ...] = ()
    """How many blocks a stopping rule would need."""
    missing: tuple[StudyError, ...] = ()
    """Parts that the study names and that do not exist yet."""
    history: Sequence[TrialRecord] = ()
    """Trials that are already in the store."""
    gates: tuple[GateForecast, ...] = ()
    """What a gate over each factor would find, if that was asked."""


def check(
    study_path: StudyFile,
    store: StoreRoot = Path("store"),
    scale: Scale = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Print the whole order of trials.")] = False,
    leave_out_missing: WithoutMissing = False,
    gate_percent: Annotated[
        float | None,
        typer.Option(
            "--gate",
            parser=percent_of,
            metavar="PERCENT",
            help="Say how many blocks a gate needs to find a loss of this many per cent, such as 5%.",
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
        checked = weigh(study_path, store, scale, leave_out_missing=leave_out_missing)
        margin = gate_forecast_output.margin_of(checked.study, gate_percent, margin_percent)
        if gate_percent is not None and margin is not None:
            floor = checked.floor.floor
            gates = gate_forecast.forecasts(checked.study, checked.plan, checked.history, floor, gate_percent, margin)
            checked = replace(checked, gates=gates)
        checked = replace(checked, warnings=(*_busy(checked, before), *_store_room(checked), *checked.warnings))
        refused = checked.refusals
    except StudyError as wrong:
        refused = wrong.errors
    if as_json:
        json.dump(as_data(checked, refused), sys.stdout, indent=1)
        sys.stdout.write("\n")
    elif checked is not None:
        _print(checked, data_console(), everything=everything)
    errors = message_console()
    missing = () if checked is None else checked.missing
    for error in (*missing, *refused):
        complain(errors, error)
    return EXIT_WRONG if refused else EXIT_MISSING if missing else EXIT_DONE


def weigh(study_path: Path, store: Path | None, scale: float, *, leave_out_missing: bool = False) -> Check:
    """Read, plan and weigh a study. Raises StudyError if it cannot be planned."""
    plugins = Plugins(study_path.parent)
    study, whole = preflight.read_and_expand(study_path, plugins, scale, leave_out_missing=leave_out_missing)
    missing, plan = preflight.missing(study_path, study, whole), preflight.available(whole)
    if not plan.trials:
        return _only_planned(study, whole, plugins, missing)
    examined = preflight.examine(study_path, study, plan, plugins, store)
    study, history, cost = examined.study, examined.history, examined.cost
    floor, floor_words = floor_for(study, plan)
    return Check(
        missing=missing,
        floor=floor,
        floor_words=floor_words,
        plugins=plugins,
        history=history,
        study=study,
        plan=whole,
        cost=cost,
        until=stopping_forecast.blocks_needed(study, plan, history),
        machine=examined.machine,
        resolutions=resolution(study, whole, history, floor.floor),
        warnings=(
            *_partly(plan, whole),
            *warnings(study, whole, plugins),
            *assumptions(plan, Abilities(plugins)),
            *load_feasibility.notes(plan, history, examined.machine.cores, plugins),
            *stopping_forecast.notes(study, plan, cost),
        ),
        refusals=examined.refusals,
    )


def _only_planned(study: Study, plan: Plan, plugins: Plugins, missing: tuple[StudyError, ...]) -> Check:
    """A study of which nothing can be run yet: without an estimate."""
    return Check(
        study=study,
        plan=plan,
        cost=None,
        machine=read_machine(cache_folder()),
        resolutions=resolution(study, plan),
        warnings=warnings(study, plan, plugins),
        refusals=(),
        floor=FoundFloor(),
        floor_words="none: nothing of this study can be run yet",
        plugins=plugins,
        missing=missing,
    )


def _partly(available: Plan, whole: Plan) -> Iterator[str]:
    """What the estimates leave out."""
    trials = len(available.trials)
    if trials < len(whole.trials):
        yield (
            f"time, memory and disk are those of {trials:,} of {len(whole.trials):,} trials: the others need a part "
            "that does not exist yet"
        )


def _busy(checked: Check, before: Look) -> Iterator[str]:
    """A note if this machine is too busy to measure on, by what it did during this command."""
    limits = checked.study.limits
    if checked.cost is None:
        return
    settings = preflight.available(checked.plan).trials[0].settings
    if on_this_machine(make_site(checked.plugins, settings, state_folder())):
        for reason in disturbed_since(before, state_folder(), limits):
            wait = f"`run` would wait for a quiet machine, at most {duration(limits.quiet_wait_s)}"
            yield f"this machine is busy: {short(reason)}; {wait} (limits.quiet_wait_s)"


def _store_room(checked: Check) -> Iterator[str]:
    """A note if the store is on a disk of its own that may be too small. `run` looks at it before each trial."""
    needed = 0 if checked.cost is None else checked.cost.store_bytes
    free = checked.machine.store_free_bytes
    if free is not None and needed > free:
        yield (
            f"the remaining trials may need {data_size(needed)} in the store, {data_size(free)} are free there: free "
            "some space, or name another folder (--store)"
        )


def as_data(checked: Check | None, refused: Sequence[StudyError]) -> dict[str, Any]:
    """The same as one JSON object."""
    errors = _errors(refused)
    if checked is None:
        return {"errors": errors}
    return {
        "study": checked.study.study.model_dump(mode="json"),
        "treatments": list(treatments_of(checked.study, checked.plugins)),
        "aliases": list(aliases_of(checked.study, checked.plugins)),
        "workloads": {name: asdict(told) for name, told in explanations(checked.plan, checked.plugins).items()},
        "plan": checked.plan.model_dump(mode="json"),
        "estimate": None if checked.cost is None else checked.cost.model_dump(mode="json"),
        "machine": checked.machine.model_dump(mode="json"),
        "resolution": [item.model_dump(mode="json") for item in checked.resolutions],
        "warnings": list(checked.warnings),
        "until": stopping_forecast.as_data(checked.until, checked.study),
        "noise_floor": {"said": checked.floor_words, **checked.floor.model_dump(mode="json")},
        "missing": _errors(checked.missing),
        "gate": [item.model_dump(mode="json") for item in checked.gates],
        "errors": errors,
    }


def _errors(errors: Sequence[StudyError]) -> list[dict[str, Any]]:
    return [
        {"message": error.message, "hint": error.hint, "path": error.path, "line": error.line, "key": error.key}
        for error in errors
    ]


def _print(checked: Check, console: Console, *, everything: bool) -> None:
    about = checked.study.study
    console.print(f"[bold]{escape(about.title or about.name)}[/]", highlight=False)
    console.print(escape(about.question.strip()), highlight=False)
    if about.source:
        console.print(f"[dim]after {escape(about.source.strip())}[/]", highlight=False)
    console.print()
    tables = (
        *_workloads(checked),
        _factors(checked),
        _named_levels(checked.study),
        _treatments(checked, everything=everything),
        _order(checked.plan, everything=everything),
        _needs(checked),
        _until(checked),
        *gate_forecast_output.tables(checked.gates),
    )
    for table in tables:
        if table.row_count:
            print_table(table, console)
            console.print()
    console.print(f"[bold]noise floor[/] {escape(checked.floor_words)}", highlight=False)
    for line in checked.warnings:
        console.print(f"[yellow]note[/] {escape(line)}", highlight=False)


def aliases_of(study: Study, plugins: Plugins) -> tuple[str, ...]:
    """What a fraction cannot tell apart, in words; nothing of other designs."""
    fraction = fraction_of(study, plugins)
    return fraction.sentences() if fraction is not None else ()


def explanations(plan: Plan, plugins: Plugins) -> dict[str, Explanation]:
    """What each workload of a plan does that says it of itself, by name, in its first trial."""
    first = {trial.settings.workload.name: trial.settings for trial in reversed(plan.trials)}
    workloads = {name: make_workload(plugins, settings) for name, settings in reversed(first.items())}
    return {name: workload.explain() for name, workload in workloads.items() if isinstance(workload, Explains)}


def _workloads(checked: Check) -> Iterator[Table]:
    for name, explanation in explanations(checked.plan, checked.plugins).items():
        table = explanation_table(f"Workload {name}", explanation)
        table.caption = explanation_sentence(explanation)
        table.caption_justify = "left"
        yield table


def _table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _factors(checked: Check) -> Table:
    table = _table("Factors", "factor", "levels", "varies over", "n per level", "detects", right=("n per level",))
    resolved = {item.factor: item for item in checked.resolutions}
    for factor, levels in checked.plan.factors.items():
        item = resolved.get(factor)
        table.add_row(
            escape(factor),
            escape(", ".join(level_key(level) for level in levels)),
            "starts" if factor in checked.plan.hard else "trials within a start",
            str(item.n) if item else "",
            _apart(item),
        )
    return table


def _named_levels(study: Study) -> Table:
    table = _table("Named levels", "factor", "level", "sets", "stands for")
    for factor, levels in study.levels.items():
        for level, named in levels.items():
            row = (factor, level, named.fields_in_words(), named.number_in_words())
            table.add_row(*(escape(text) for text in row))
    return table


def _apart(item: Resolution | None) -> str:
    if item is None:
        return ""
    if item.difference is None:
        return "nothing: one start per level has no error term"
    return f"{item.difference:.0%} and up, with a CV of {item.cv:.1%} ({item.cv_source})"


def _treatments(checked: Check, *, everything: bool) -> Table:
    design = checked.study.design
    treatments = treatments_of(checked.study, checked.plugins)
    title = f"{count(len(treatments), 'treatment')}, {design.kind}"
    factors = tuple(checked.plan.factors)
    table = _table(title, "", *(escape(factor) for factor in factors), "starts", "trials", right=("starts", "trials"))
    shown = treatments if everything else treatments[:TREATMENTS_SHOWN]
    for place, treatment in enumerate(shown, start=1):
        mine = [trial for trial in checked.plan.trials if trial.treatment == treatment]
        table.add_row(
            str(place),
            *(escape(level_key(treatment[factor])) for factor in factors),
            str(len({trial.start for trial in mine})),
            str(len(mine)),
        )
    if len(shown) < len(treatments):
        table.add_row("", f"and {len(treatments) - len(shown)} more (--all)")
    return table


def _order(plan: Plan, *, everything: bool) -> Table:
    blocks = len({trial.block for trial in plan.trials})
    table = _table(
        f"{count(len(plan.trials), 'trial')} in {count(blocks, 'block')}, seed {plan.seed}",
        "position",
        "block",
        "start",
        "order within the start",
    )
    shown = entries = 0
    for group in _by_start(plan.trials):
        first, last = group[0].position + 1, group[-1].position + 1
        hard = ", ".join(f"{factor} {level_key(group[0].treatment[factor])}" for factor in plan.hard)
        order = list(_in_start(plan, group))
        if entries + len(order) > ENTRIES_SHOWN and shown and not everything:
            table.add_row("...", "", "", f"and {len(plan.trials) - shown} more (--all)")
            break
        line = " · ".join(order if everything else order[:ENTRIES_SHOWN])
        line += (
            f" · and {len(order) - ENTRIES_SHOWN} more (--all)" if len(order) > ENTRIES_SHOWN and not everything else ""
        )
        table.add_row(f"{first}-{last}", str(group[0].block), escape(hard or "one cluster"), escape(line))
        shown += len(group)
        entries += len(order)
    return table


def _by_start(trials: Sequence[PlannedTrial]) -> list[list[PlannedTrial]]:
    groups: list[list[PlannedTrial]] = []
    for trial in trials:
        if groups and groups[-1][-1].start == trial.start:
            groups[-1].append(trial)
        else:
            groups.append([trial])
    return groups


def _in_start(plan: Plan, trials: Sequence[PlannedTrial]) -> Iterator[str]:
    """Easy levels in order; repeats in a row are counted."""
    names: list[tuple[str, int]] = []
    for trial in trials:
        easy = [level_key(level) for factor, level in trial.treatment.items() if factor not in plan.hard]
        name = (" ".join(easy) or "trial") + (" (control)" if trial.control else "")
        if names and names[-1][0] == name:
            names[-1] = (name, names[-1][1] + 1)
        else:
            names.append((name, 1))
    for name, times in names:
        yield name if times == 1 else f"{times} x {name}"


def _needs(checked: Check) -> Table:
    cost, machine = checked.cost, checked.machine
    table = _table("Costs", "", "needed", "there is")
    if cost is None:
        return table
    now_s = time.time()
    end, low, high = (clock(now_s + seconds, now_s) for seconds in (cost.seconds, cost.low_s, cost.high_s))
    done = f", {cost.trials_done} trials of {cost.trials} are done" if cost.trials_done else ""
    table.add_row(
        "time",
        f"{forecast(cost.seconds)} ({forecast(cost.low_s)} to {forecast(cost.high_s)}; {cost.source}{done})",
        f"done about {end} ({low} to {high}) if started now",
    )
    starts = ", ".join(f"{forecast(second)} with {count(nodes, 'node')}" for nodes, second in cost.start_s.items())
    table.add_row("per start", starts, count(cost.starts, "start"))
    table.add_row("per trial", forecast(cost.trial_s), count(cost.trials, "trial"))
    table.add_row(
        "memory",
        f"{data_size(cost.memory_mb * BYTES_PER_MIB)} at most",
        f"{data_size(machine.memory_mb * BYTES_PER_MIB)} available, {count(machine.cores, 'core')}",
    )
    table.add_row(
        "disk",
        f"{data_size(cost.disk_bytes)} at most",
        f"{data_size(machine.disk_free_bytes)} free",
    )
    if machine.store_free_bytes is not None:
        table.add_row(
            "the store", f"{data_size(cost.store_bytes)}", f"{data_size(machine.store_free_bytes)} free there"
        )
    return table


def _until(checked: Check) -> Table:
    """How long a study with a stopping rule would take, by how much its starts vary."""
    table = _table(_rule_in_words(checked), "CV between starts", "blocks", "time, 8 in 10 studies", "")
    rows = (
        () if checked.cost is None else stopping_forecast.rows(checked.until, checked.study, checked.plan, checked.cost)
    )
    for row in rows:
        known = ", as in this store" if row.of_the_store else ""
        time = forecast(row.low_s) if row.low_s == row.high_s else f"{forecast(row.low_s)} to {forecast(row.high_s)}"
        blocks = row.expected
        number = f"{blocks.middle}" if blocks.low == blocks.high else f"{blocks.middle} ({blocks.low} to {blocks.high})"
        table.add_row(f"{blocks.cv:.1%}{known}", number, time, row.remark)
    return table


def _rule_in_words(checked: Check) -> str:
    rule = rule_of(checked.study)
    if rule is None:
        return ""
    hours = f", {rule.hours:g} hours at most" if rule.hours else ""
    return (
        f"Until half of each {rule.confidence:.0%} interval of the mean is within {rule.width_percent:g}% of it: "
        f"from {rule.least_starts} to {stopping_forecast.cap(checked.plan)} starts{hours}"
    )
