"""`steelyard compare STORE REFERENCE`: own trials beside published numbers, with what makes them incomparable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.analyse import frame_of
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import label
from steelyard.analysis.summary import summarise
from steelyard.cli.terminal.wide_table import uncut
from steelyard.format import NODES, signed
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reading import published as laid
from steelyard.reference import tables as shipped
from steelyard.reference.audit.finding import figure
from steelyard.reference.beside import Beside, Conditions, richardson2017
from steelyard.reference.richardson import OVERALL, CellKey, key_of
from steelyard.report.figures import forest

if TYPE_CHECKING:
    from steelyard.cli.compare import Asked, Opened

RICHARDSON = "richardson2017"
RESPONSE = "execution_time_ms"
SUMMARY = "trial_time_summary"
RICHARDSONS = (SUMMARY, "regression", "speedup")
WORKLOAD = ("workload", "workload.name")
PUBLISHED = {"platform": "raspberry-pi-2", "ram_gb": "1", "link": "ethernet"}
"""Which published cells to lay own ones beside, unless --b says."""
SHOWN = ("mean", "std", "50%")
"""Statistics of a summary on the screen; `--json` has all."""
EXIT_AGREES, EXIT_OTHERWISE = 0, 1
NEEDS = {"regression": "every size that it was fitted to (1 to 6)", "speedup": "both platforms or both links"}
"""What the tables of richardson2017 over several cells need of ours."""
NOTHING_PUBLISHED = ("nothing was published",)
MOST_REASONS = 6
"""Lines on the screen about numbers that have none of ours beside them."""
STYLES = {"agrees": "green", "differs": "red", "not comparable": "yellow"}


def beside(asked: Asked, ours: Opened, console: Console) -> int:
    """Print or give as JSON. Returns 0 if every number of ours that has an interval agrees, else 1.

    Raises StudyError for an unknown reference, or where own treatments cannot be told apart.
    """
    tables = _tables(asked)
    if asked.figure is not None:
        forest.refuse_other(asked.figure)
    frame = frame_of(ours.records, ours.study)
    from steelyard.cli.compare import levels

    fixed = levels(asked.fixed_a, frame.factors, "--a")
    if tables[0].source.name == RICHARDSON:
        found, remarks, more = _of_richardson(asked, ours, frame, fixed)
        found = tuple(one for one in found if one.table in {table.name for table in tables})
        if not found:
            needs = "; ".join(f"{table.name}: {NEEDS[table.name]}" for table in tables if table.name in NEEDS)
            raise StudyError(f"nothing of ours can be laid beside {asked.b}", f"it needs {needs}", read=str(asked.b))
    else:
        found, remarks, more = _of_forms(tables, ours, fixed, asked.fixed_b)
    if asked.as_json:
        _print_json(str(asked.b), found, remarks, more)
    else:
        _draw(found, remarks, ours.study.study.name, str(asked.b), console)
    if asked.figure is not None:
        _figure(found, ours, asked)
    judged = [one for one in found if one.verdict != "no number" and one.ours is not None and one.ours.low is not None]
    return EXIT_AGREES if judged and all(one.verdict == "agrees" for one in judged) else EXIT_OTHERWISE


def _of_richardson(
    asked: Asked, ours: Opened, frame: TrialFrame, fixed: Mapping[str, Level]
) -> tuple[tuple[Beside, ...], list[str], dict[str, Any]]:
    """What is laid beside, remarks, and what `--json` says besides."""
    published = _published(asked.fixed_b)
    cells = _cells(ours, frame, fixed, published)
    trials = {key: [float(one) for one in frame.values(RESPONSE, treatment)[RESPONSE]] for key, treatment in cells}
    trials = {key: values for key, values in trials.items() if values}
    if not trials:
        raise StudyError("no cell has valid trials with an execution time", "`steelyard status STORE` says why")
    conditions, mixed = _conditions(ours, cells)
    estimates = _estimates(frame, cells, ours.study.analysis.confidence)
    found = richardson2017(trials, conditions, estimates)
    if not found:
        own = ", ".join(" ".join(key) for key in trials)
        raise StudyError(f"no published cell is about {own}", f"`steelyard reference show {RICHARDSON}` lists them")
    remarks = [*mixed, *_remarks(conditions, published, trials), *_absent(found)]
    told = [
        {"cell": key._asdict(), "statistic": statistic, **one.model_dump(mode="json")}
        for (key, statistic), one in estimates.items()
    ]
    return found, remarks, {"conditions": conditions.model_dump(mode="json"), "estimates": told}


def _of_forms(
    tables: Sequence[shipped.Table], ours: Opened, fixed: Mapping[str, Level], texts: Sequence[str]
) -> tuple[tuple[Beside, ...], list[str], dict[str, Any]]:
    """The same of references whose mapping is data (`tables.toml`)."""
    chosen = _chosen(tables, texts)
    found, own = laid.lay(tables, ours, fixed)
    kept = tuple(one for one in found if all(one.cell.get(name) in (None, level) for name, level in chosen.items()))
    said = [caveat for table in tables for caveat in table.caveats]
    return kept, said, {"own": [{"treatment": one.name, "n": one.n, "facets": dict(one.facets)} for one in own]}


def _chosen(tables: Sequence[shipped.Table], texts: Sequence[str]) -> dict[str, str]:
    """The rows that `--b replication_factor=3` chooses. Raises StudyError with what there is."""
    known: dict[str, list[str]] = {}
    for row in (row for table in tables for row in table.rows):
        for name, text in row.key.items():
            if text not in known.setdefault(name, []):
                known[name].append(text)
    found = {}
    for text in (part for one in texts for part in one.split(",")):
        name, _, wanted = (part.strip() for part in text.partition("="))
        if wanted not in known.get(name, ()):
            there = "; ".join(f"{one}: {', '.join(values)}" for one, values in known.items())
            raise StudyError(f"--b {text}: nothing like it was published", f"there are: {there}", key="--b", read=text)
        found[name] = wanted
    return found


def _tables(asked: Asked) -> tuple[shipped.Table, ...]:
    """The tables of a study, or the one table, that were asked for."""
    name = str(asked.b)
    try:
        found = shipped.named(name)
    except shipped.UnknownReference as error:
        raise shipped.UnknownReference(f"{name!r} is no store, no shipped table and no study", error.hint) from error
    if len({table.source.name for table in found}) > 1:
        names = ", ".join(dict.fromkeys(table.source.name for table in found))
        raise StudyError(f"{name}: one publication at a time", f"one of {names}", read=name)
    time_only = found[0].source.name == RICHARDSON
    if asked.response is not None and not (time_only and asked.response in (RESPONSE, "time", "execution_time")):
        what = "execution times only" if time_only else "numbers of its own, each of which is laid beside ours"
        raise StudyError(f"--response {asked.response}", f"{found[0].source.name} published {what}", key="--response")
    if asked.margin_percent is not None:
        raise StudyError("--margin is for two sides of trials", "what agrees is decided by the printed digits")
    return found


def _published(texts: Sequence[str]) -> dict[str, str]:
    """The published cells that `--b platform=virtual-machine,ram_gb=2` chooses; its link follows the platform."""
    found = dict(PUBLISHED)
    known: dict[str, list[str]] = {}
    for row in shipped.tables()[SUMMARY].rows:
        for name in PUBLISHED:
            if row.key[name] not in known.setdefault(name, []):
                known[name].append(row.key[name])
    for text in (part for one in texts for part in one.split(",")):
        name, _, wanted = (part.strip() for part in text.partition("="))
        if wanted not in known.get(name, ()):
            there = "; ".join(f"{one}: {', '.join(values)}" for one, values in known.items())
            raise StudyError(f"--b {text}: nothing like it was published", f"there are: {there}", key="--b", read=text)
        found[name] = wanted
        if name == "platform" and not any("link=" in one for one in texts):
            found["link"] = "nodal" if wanted == "virtual-machine" else "ethernet"
    return found


def _cells(
    ours: Opened, frame: TrialFrame, fixed: Mapping[str, Level], published: Mapping[str, str]
) -> list[tuple[CellKey, dict[str, Level]]]:
    """Own treatments with the published words for their workload and size. Raises StudyError where two have the same
    words."""
    found: dict[CellKey, dict[str, Level]] = {}
    for treatment in frame.treatments():
        if any(treatment.get(name) != level for name, level in fixed.items()):
            continue
        settings = next(one.settings for one in ours.records if one.treatment == treatment)
        name = next((treatment[one] for one in WORKLOAD if one in treatment), settings["workload"]["name"])
        nodes = next((treatment[one] for one in NODES if one in treatment), settings["site"]["nodes"])
        letter = str(name).rsplit("-", 1)[-1].upper()
        key = CellKey(letter, published["platform"], published["ram_gb"], published["link"], str(nodes))
        if key in found:
            names = [one for one in frame.names if treatment.get(one) != found[key].get(one)]
            raise StudyError(
                f"{label(found[key])} and {label(treatment)} would be laid beside the same published cell",
                f"choose one: --a {names[0]}=LEVEL",
                key="--a",
            )
        found[key] = treatment
    return list(found.items())


def _conditions(
    ours: Opened, cells: Sequence[tuple[CellKey, Mapping[str, Level]]]
) -> tuple[Conditions, tuple[str, ...]]:
    """What holds for all own trials, and a remark for what does not."""
    treatments = [treatment for _, treatment in cells]
    chosen = [one for one in ours.records if one.treatment in treatments and one.verdict.outcome == "valid"]
    facts = {one.start: ours.store.facts(one) for one in reversed(chosen)}
    several: dict[str, set[Any]] = {
        "version": {_version(one) for one in chosen},
        "records": {one.settings["workload"].get("records") for one in chosen},
        "operations": {one.settings["load"].get("operations") for one in chosen},
        "threads": {one.settings["load"].get("threads") for one in chosen},
        "platform": {laid.platform_of(told) for told in facts.values()},
    }
    one_value = {name: next(iter(values)) for name, values in several.items() if len(values) == 1}
    mixed = [
        f"our cells differ in {name} ({', '.join(sorted(str(one) for one in values))}), which is not judged here"
        for name, values in several.items()
        if len(values) > 1
    ]
    return Conditions.model_validate(one_value), tuple(mixed)


def _version(record: TrialRecord) -> str:
    name = str(record.settings["system"]["name"])
    return f"{name} {record.settings['system'].get('version', '')}".strip()


def _estimates(
    frame: TrialFrame, cells: Sequence[tuple[CellKey, dict[str, Level]]], confidence: float
) -> dict[tuple[CellKey, str], Estimate]:
    """Own intervals: of the mean over starts where there are several, else over trials; of the median over trials."""
    found: dict[tuple[CellKey, str], Estimate] = {}
    for key, treatment in cells:
        one = summarise(frame, RESPONSE, treatment, confidence)
        centre = one.mean_of_starts or one.mean
        if centre is not None:
            found[key, "mean"] = centre
        if one.median is not None:
            found[key, "50%"] = one.median
    return found


def _remarks(
    conditions: Conditions, published: Mapping[str, str], trials: Mapping[CellKey, Sequence[float]]
) -> tuple[str, ...]:
    known = {key_of(row.key) for row in shipped.tables()[SUMMARY].wide()}
    without = [key for key in trials if key not in known]
    said = [f"ours are laid beside {' '.join(published.values())}; --b platform=, ram_gb=, link= choose others"]
    if without:
        said.append(f"nothing was published of {'; '.join(f'{one.workload} {one.words()}' for one in without)}")
    if conditions.platform is None:
        said.append("our platform is not known: no facts of a node")
    said.append("an interval stands behind our means and medians only; published numbers rest on one start a cell")
    return tuple(said)


def _absent(found: Sequence[Beside]) -> tuple[str, ...]:
    """Published tables of which nothing could be laid beside ours."""
    there = {one.table for one in found}
    return tuple(f"no {table} is recomputed: it needs {what}" for table, what in NEEDS.items() if table not in there)


def _print_json(name: str, found: Sequence[Beside], remarks: Sequence[str], more: Mapping[str, Any]) -> None:
    told = {
        "reference": name,
        "beside": [{**one.model_dump(mode="json"), "sentence": one.sentence()} for one in found],
        **more,
        "remarks": list(remarks),
    }
    print(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False))


def _draw(found: Sequence[Beside], remarks: Sequence[str], study: str, name: str, console: Console) -> None:
    reasons: dict[str, str] = {}
    for table in dict.fromkeys(one.table for one in found):
        of_table = [one for one in found if one.table == table]
        rows = [one for one in of_table if one.ours is not None and (table != SUMMARY or one.statistic in SHOWN)]
        console.print(Text(f"{study} beside {name}: {_title(table)}", style="bold"), soft_wrap=True)
        if rows:
            _grid(rows, rows if table in RICHARDSONS else of_table, reasons, console)
        for line in _without(of_table):
            console.print(Text(f" {line}"), soft_wrap=True)
        console.print()
    for why, mark in reasons.items():
        console.print(Text(f"({mark}) {why}"), soft_wrap=True)
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in (*STYLES, "no number")}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    console.print(Text(f"{len(found)} numbers: {told}", style="bold"), soft_wrap=True)
    if any(one.table == SUMMARY for one in found):
        console.print(Text("counts, quartiles, extremes and ranges: --json", style="dim"))
    for remark in remarks:
        console.print(Text(remark, style="dim"), soft_wrap=True)


def _grid(rows: Sequence[Beside], every: Sequence[Beside], reasons: dict[str, str], console: Console) -> None:
    """The rows with a number of ours; which keys vary, and so are shown, `every` row says."""
    keys = [name for name in rows[0].cell if len({one.cell[name] for one in every}) > 1 or name == "workload"]
    grid = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
    for name in [*keys, "number"]:
        grid.add_column(name.replace("_", " "), no_wrap=True)
    for name in ("published", "ours", "change"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for one in rows:
        marks = [reasons.setdefault(why, f"{len(reasons) + 1}") for why in one.reasons]
        verdict = Text(one.verdict, style=STYLES.get(one.verdict, "dim"))
        verdict.append(f" ({', '.join(marks)})" if marks else "")
        values = (one.cell[name] for name in keys)
        grid.add_row(*values, one.statistic, one.printed, _ours(one), _change(one), verdict)
    uncut(grid, console)


def _without(rows: Sequence[Beside]) -> list[str]:
    """Published numbers with none of ours beside them, by reason."""
    alone = [one for one in rows if one.ours is None]
    groups: dict[tuple[str, tuple[str, ...]], int] = {}
    for one in alone:
        key = one.verdict, one.reasons
        groups[key] = groups.get(key, 0) + 1
    shown = [
        f"{count} of {len(rows)} {'not comparable' if verdict == 'not comparable' else 'without a number'}: "
        f"{'; '.join(reasons)}"
        for (verdict, reasons), count in groups.items()
        if reasons != NOTHING_PUBLISHED
    ]
    if len(shown) > MOST_REASONS:
        shown = [*shown[:MOST_REASONS], f"and {len(shown) - MOST_REASONS} further reasons: --json"]
    return shown


def _title(table: str) -> str:
    return shipped.tables()[table].title


def _ours(one: Beside) -> str:
    if one.ours is None:
        return "-"
    ends = ""
    if one.ours.low is not None and one.ours.high is not None:
        ends = f" [{figure(one.ours.low)}, {figure(one.ours.high)}]"
    return f"{figure(one.ours.value)}{ends}"


def _change(one: Beside) -> str:
    if one.change_percent is None:
        return "-"
    ends = (
        "" if one.low is None or one.high is None else f" [{signed(one.low, digits=3)}, {signed(one.high, digits=3)}]"
    )
    return f"{signed(one.change_percent, digits=3)}%{ends}"


def _figure(found: Sequence[Beside], ours: Opened, asked: Asked) -> None:
    drawn = [one for one in found if one.change_percent is not None]
    vary = {name for one in drawn for name in one.cell if len({two.cell.get(name) for two in drawn}) > 1}
    rows = [
        forest.ForestRow(
            label=_row(one, vary), value=one.change_percent, low=one.low, high=one.high, verdict=one.verdict,
            decided=one.verdict == "differs",
        )
        for one in found
        if one.change_percent is not None
        and (one.table not in RICHARDSONS or (one.table == SUMMARY and one.statistic in ("mean", "50%")))
    ]  # fmt: skip
    if not rows:
        raise StudyError("no number of ours stands beside one that can be drawn", "leave --figure out")
    what = "Execution time of " if found[0].table in RICHARDSONS else ""
    title = f"{what}{ours.study.study.name} beside {asked.b}"
    if asked.figure is not None:
        caption = "100 (ours / published - 1); the intervals hold ours and the rounding of the printed digits"
        forest.write(forest.spec(rows, title, caption, None), asked.figure)


def _row(one: Beside, vary: Set[str]) -> str:
    """What a row of the figure is about, by the columns that `vary`."""
    if one.table == SUMMARY:
        return f"workload {one.cell['workload']}, {_nodes(one.cell['cluster_size'])}, {one.statistic}"
    levels = ", ".join(f"{name} {level}" for name, level in one.cell.items() if name in vary)
    return f"{levels or one.table}: {one.statistic}".replace("_", " ")


def _nodes(size: str) -> str:
    return "all sizes" if size == OVERALL else "1 node" if size == "1" else f"{size} nodes"
