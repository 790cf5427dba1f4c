"""Output of `check`: the tables of a study, of its plan and of its cost."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.narrative.carried import procedure
from steelyard.cli.terminal.load_output import explanation_sentence, explanation_table
from steelyard.cli.terminal.output import print_table, print_wrapped, titled_table
from steelyard.format import clock, confidence_text, count, data_size, forecast, number, percent
from steelyard.judging.looks import later
from steelyard.judging.t_interval import FEWEST_STARTS, POWER
from steelyard.model.named_level import level_key
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.plan import PlanEstimate, Resolution, start_order, stopping_forecast
from steelyard.plan.check import Check
from steelyard.plan.gate_forecast import MOST_BLOCKS, GateForecast
from steelyard.plan.gate_forecast import POWER as GATE_POWER
from steelyard.plan.planned_links import links_of
from steelyard.plan.requirements import MARGIN_MEMORY_MB
from steelyard.system.base import Existing

MOST_RISE = 9.0
ENTRIES_SHOWN = 30
TREATMENTS_SHOWN = 40
MOST_SEARCHES = 4
BYTES_PER_MIB = 2**20


def draw(checked: Check, console: Console, *, everything: bool) -> None:
    """Print everything that was found out; the whole order of trials with `everything`."""
    about = checked.study.study
    console.print(about.title or about.name, style="bold", highlight=False)
    console.print(about.question.strip(), highlight=False)
    if about.source:
        console.print(f"after {about.source.strip()}", style="dim", highlight=False)
    console.print()
    tables = (
        _sites(checked.plan),
        _links(checked),
        *_workloads(checked),
        _factors(checked),
        _named_levels(checked.study),
        _treatments(checked, everything=everything),
        _order(checked.plan, everything=everything),
        _needs(checked),
        _until(checked),
        *_gates(checked.gates),
    )
    for table in tables:
        if table.row_count:
            print_table(table, console)
            console.print()
    searched = [trial.settings.load for trial in checked.plan.trials if trial.settings.load.schedule == "search"]
    for procedure_words in list(dict.fromkeys(procedure(load.search_rules()) for load in searched))[:MOST_SEARCHES]:
        print_wrapped(Text.assemble(("search", "bold"), f" {procedure_words}"), console)
    print_wrapped(Text.assemble(("noise floor", "bold"), f" {checked.floor_words}"), console)
    for line in checked.warnings:
        print_wrapped(Text.assemble(("note", "yellow"), f" {line}"), console)


def _sites(plan: Plan) -> Table:
    """The sites of databases and of load nodes; empty if one site lends both."""
    table = titled_table("Sites", "nodes", "site", "number")
    apart = [trial.settings for trial in plan.trials if trial.settings.load_site.name]
    lent = [("database nodes", settings.site.name, settings.site.nodes) for settings in apart]
    lent += [("load nodes", settings.load_site.name, settings.load_nodes) for settings in apart]
    for role, site in dict.fromkeys((role, site) for role, site, _ in lent):
        numbers = sorted({number for of, at, number in lent if (of, at) == (role, site)})
        table.add_row(role, site, ", ".join(str(number) for number in numbers))
    return table


def _links(checked: Check) -> Table:
    """Links between the nodes; empty if every site uses its network as it is."""
    table = titled_table("Links", "link", "medium", "rate", "delay", "made by")
    links = links_of(checked.plan, checked.abilities)
    for link in links if any(not each.plain for each in links) else ():
        table.add_row(*link.cells)
    return table


def _workloads(checked: Check) -> Iterator[Table]:
    for name, explanation in checked.workloads.items():
        table = explanation_table(f"Workload {name}", explanation)
        table.caption = explanation_sentence(explanation)
        table.caption_justify = "left"
        yield table


def _factors(checked: Check) -> Table:
    table = titled_table("Factors", "factor", "levels", "varies over", "n per level", "detects", right=("n per level",))
    resolved = {item.factor: item for item in checked.resolutions}
    for factor, levels in checked.plan.factors.items():
        item = resolved.get(factor)
        table.add_row(
            factor,
            ", ".join(level_key(level) for level in levels),
            "starts" if factor in checked.plan.hard else "trials within a start",
            str(item.n) if item else "",
            _apart(item),
        )
    table.caption, table.caption_justify = _detects(checked), "left"
    return table


def _detects(checked: Check) -> str:
    """Explanation of detection: probability and confidence, equal levels, and the cost of a further look."""
    analysis, first = checked.study.analysis, later(checked.study, 1).analysis.confidence
    text = f"detects: a rise found with a probability of {POWER:.0%}, at {confidence_text(first)}"
    if analysis.looks == "several":
        text += f" (look 1 of several; look 2 is at {confidence_text(later(checked.study, 2).analysis.confidence)})"
    else:
        text += '; one look: after further blocks no verdict is final, unless the file says looks = "several" before '
        text += "the first trial"
    known = [item for item in checked.resolutions if item.equal_passes is not None]
    if passes := [f"{item.factor} {percent(item.equal_passes)}" for item in known if item.equal_passes is not None]:
        margin = number(analysis.equivalence_margin_percent or 0, digits=2)
        text += f"; probability that equal levels are called equivalent within {margin}%: {', '.join(passes)}"
    return text


def _named_levels(study: Study) -> Table:
    table = titled_table("Named levels", "factor", "level", "sets", "stands for")
    for factor, levels in study.levels.items():
        for level, named in levels.items():
            row = (factor, level, named.fields_in_words(), named.number_in_words())
            table.add_row(*row)
    return table


def _apart(item: Resolution | None) -> str:
    if item is None:
        return ""
    if item.n < 2:
        return "nothing: one start per level has no error term"
    if item.hard and item.n < FEWEST_STARTS:
        return f"nothing: an interval needs {FEWEST_STARTS} starts per level"
    if item.difference is None:
        return "nothing: at this confidence the interval is unbounded"
    rise = f"{math.ceil(100 * item.difference)}%" if item.difference < MOST_RISE else "tenfold"
    return f"{rise} and up, with a CV of {item.cv:.1%} ({item.cv_source})"


def _treatments(checked: Check, *, everything: bool) -> Table:
    design = checked.study.design
    treatments = checked.treatments
    title = f"{count(len(treatments), 'treatment')}, {design.kind}"
    factors = tuple(checked.plan.factors)
    table = titled_table(title, "", *factors, "starts", "trials", right=("starts", "trials"))
    shown = treatments if everything else treatments[:TREATMENTS_SHOWN]
    for place, treatment in enumerate(shown, start=1):
        mine = [trial for trial in checked.plan.trials if trial.treatment == treatment]
        table.add_row(
            str(place),
            *(level_key(treatment[factor]) for factor in factors),
            str(len({trial.start for trial in mine})),
            str(len(mine)),
        )
    if len(shown) < len(treatments):
        table.add_row("", f"and {len(treatments) - len(shown)} more (--all)")
    return table


def _order(plan: Plan, *, everything: bool) -> Table:
    blocks = len({trial.block for trial in plan.trials})
    table = titled_table(
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
        table.add_row(
            str(first) if first == last else f"{first}-{last}",
            str(group[0].block),
            hard or "one cluster",
            line,
        )
        shown += len(group)
        entries += len(order)
    table.caption, table.caption_justify = "\n".join(start_order.sentences(plan)), "left"
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


def _whose_memory(checked: Check, cost: PlanEstimate) -> str:
    """A note that it is the laboratory's, if the nodes use none of this machine's."""
    own = cost.memory_mb == MARGIN_MEMORY_MB
    return ", the laboratory's own: the cluster exists" if own and _of_existing(checked) else ""


def _of_existing(checked: Check) -> bool:
    abilities = checked.abilities
    return all(isinstance(abilities.system(trial.settings), Existing) for trial in checked.runnable.trials)


def _needs(checked: Check) -> Table:
    cost, machine = checked.cost, checked.machine
    table = titled_table("Costs", "", "needed", "there is")
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
        f"{data_size(cost.memory_mb * BYTES_PER_MIB)} at most{_whose_memory(checked, cost)}",
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
    """Duration of a study with a stopping rule, by the variation of its starts."""
    table = titled_table(_rule_in_words(checked), "CV between starts", "blocks", "time, 8 in 10 studies", "")
    rows = (
        () if checked.cost is None else stopping_forecast.rows(checked.until, checked.rule, checked.plan, checked.cost)
    )
    for row in rows:
        known = ", as in this store" if row.of_the_store else ""
        time = forecast(row.low_s) if row.low_s == row.high_s else f"{forecast(row.low_s)} to {forecast(row.high_s)}"
        blocks = row.expected
        number = f"{blocks.middle}" if blocks.low == blocks.high else f"{blocks.middle} ({blocks.low} to {blocks.high})"
        table.add_row(f"{blocks.cv:.1%}{known}", number, time, row.remark)
    return table


def _rule_in_words(checked: Check) -> str:
    rule = checked.rule
    if rule is None:
        return ""
    hours = f", {rule.hours:g} hours at most" if rule.hours else ""
    return (
        f"Until half of each {rule.confidence:.0%} interval of the mean is within {rule.width_percent:g}% of it: "
        f"from {rule.least_starts} to {checked.plan.blocks} starts{hours}"
    )


def _gates(forecasts: Sequence[GateForecast]) -> Iterator[Table]:
    """Blocks that a gate over each factor needs, a table for each."""
    for item in forecasts:
        loss, margin = (f"{number(one, digits=3, trim=True)}%" for one in (item.change_percent, item.margin_percent))
        cells, planned = count(item.comparisons, "comparison"), count(item.blocks, "block")
        title = f"Gate over {item.factor}, {cells}, margin {margin}"
        table = titled_table(title, "", "chance", "")
        needed = f"{planned}; {_blocks_for(item.blocks_needed)}"
        table.add_row(f"a loss of {loss} is detected", percent(item.power), needed)
        table.add_row(
            "an equal build passes", percent(item.equal_passes), f"{planned}; {_blocks_for(item.blocks_to_pass)}"
        )
        if item.found_percent is not None:
            least = f"a loss of {number(item.found_percent, digits=2)}% is detected"
            table.add_row(least, percent(GATE_POWER), planned)
        table.caption = f"with a CV of the ratios of pairs of {percent(item.cv)} ({item.cv_source})"
        table.caption_justify = "left"
        yield table


def _blocks_for(blocks: int | None) -> str:
    """`14 blocks for 95%`."""
    needed = f"more than {MOST_BLOCKS:,} blocks" if blocks is None else count(blocks, "block")
    return f"{needed} for {percent(GATE_POWER)}"
