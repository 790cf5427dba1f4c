"""`steelyard compare STORE richardson2017`: own trials beside published numbers, with what makes them incomparable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.analyse import frame_of
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.results import NODES, label
from steelyard.analysis.summary import summarise
from steelyard.cli.grid import uncut
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.trial import TrialRecord
from steelyard.reference import tables as shipped
from steelyard.reference.beside import Beside, Conditions, richardson2017
from steelyard.reference.richardson import OVERALL, CellKey, key_of
from steelyard.report import forest

if TYPE_CHECKING:
    from steelyard.cli.compare import Asked, Opened

RICHARDSON = "richardson2017"
RESPONSE = "execution_time_ms"
SUMMARY = "trial_time_summary"
WORKLOAD = ("workload", "workload.name")
PUBLISHED = {"platform": "raspberry-pi-2", "ram_gb": "1", "link": "ethernet"}
"""Which published cells to lay own ones beside, unless --b says."""
SHARED_BY_ALL = ("version", "records", "operations", "threads", "platform")
SHOWN = ("mean", "std", "50%")
"""Statistics of a summary on the screen; `--json` has all."""
EXIT_AGREES, EXIT_OTHERWISE = 0, 1
STYLES = {"agrees": "green", "differs": "red", "not comparable": "yellow"}


def beside(asked: Asked, ours: Opened, console: Console) -> int:
    """Print or give as JSON. Returns 0 if every number of ours that has an interval agrees, else 1.

    Raises StudyError for another reference than richardson2017, or where no own cell has a published one.
    """
    _refuse(asked)
    if asked.figure is not None:
        forest.refuse_other(asked.figure)
    published = _published(asked.fixed_b)
    frame = frame_of(ours.records, ours.study)
    from steelyard.cli.compare import levels

    fixed = levels(asked.fixed_a, frame.factors, "--a")
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
    if asked.as_json:
        _print_json(found, conditions, remarks, estimates)
    else:
        _draw(found, remarks, ours, console)
    if asked.figure is not None:
        _figure(found, ours, asked)
    judged = [one for one in found if one.verdict != "no number" and one.ours is not None and one.ours.low is not None]
    return EXIT_AGREES if judged and all(one.verdict == "agrees" for one in judged) else EXIT_OTHERWISE


def _refuse(asked: Asked) -> None:
    name = str(asked.b)
    try:
        source = shipped.named(name)[0].source.name
    except shipped.UnknownReference as error:
        raise shipped.UnknownReference(f"{name!r} is no store, no shipped table and no study", error.hint) from error
    if name != RICHARDSON:
        raise StudyError(
            f"{name} ({source}) has no published form that own trials can be laid beside",
            f"{RICHARDSON} has; `steelyard reference show {name}` prints the numbers",
            read=name,
        )
    if asked.metric is not None and asked.metric not in (RESPONSE, "time", "execution_time"):
        raise StudyError(f"--metric {asked.metric}", f"{RICHARDSON} published execution times only", key="--metric")
    if asked.margin_percent is not None:
        raise StudyError("--margin is for two sides of trials", "what agrees is decided by the printed digits")


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
        "platform": {_platform(told) for told in facts.values()},
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


def _platform(facts: Mapping[str, Mapping[str, str]]) -> str | None:
    """What the database nodes are, by their facts: a board's name, or site, processor and what stands in between."""
    told = next((one for name, one in facts.items() if not name.startswith(("system:", "l", "machine"))), None)
    if told is None:
        return None
    model = told.get("board") or told.get("cpu_model", "")
    if "raspberry pi 2" in model.casefold():
        return "raspberry-pi-2"
    parts = [told.get("site", ""), model]
    return " on ".join(part for part in parts if part) or None


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
    needs = {"regression": "every size that it was fitted to (1 to 6)", "speedup": "both platforms or both links"}
    there = {one.table for one in found}
    return tuple(f"no {table} is recomputed: it needs {what}" for table, what in needs.items() if table not in there)


def _print_json(
    found: Sequence[Beside], conditions: Conditions, remarks: Sequence[str],
    estimates: Mapping[tuple[CellKey, str], Estimate],
) -> None:  # fmt: skip
    told = {
        "reference": RICHARDSON,
        "conditions": conditions.model_dump(mode="json"),
        "beside": [{**one.model_dump(mode="json"), "sentence": one.sentence()} for one in found],
        "estimates": [
            {"cell": key._asdict(), "statistic": statistic, **one.model_dump(mode="json")}
            for (key, statistic), one in estimates.items()
        ],
        "remarks": list(remarks),
    }
    print(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False))


def _draw(found: Sequence[Beside], remarks: Sequence[str], ours: Opened, console: Console) -> None:
    reasons: dict[str, str] = {}
    for table in dict.fromkeys(one.table for one in found):
        rows = [one for one in found if one.table == table and (table != SUMMARY or one.statistic in SHOWN)]
        console.print(Text(f"{ours.study.study.name} beside {RICHARDSON}: {_title(table)}", style="bold"))
        keys = [name for name in rows[0].cell if len({one.cell[name] for one in rows}) > 1 or name == "workload"]
        grid = Table(box=None, padding=(0, 2, 0, 1), header_style="dim")
        for name in [*keys, "number"]:
            grid.add_column(name, no_wrap=True)
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
        console.print()
    for why, mark in reasons.items():
        console.print(Text(f"({mark}) {why}"), soft_wrap=True)
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in (*STYLES, "no number")}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    console.print(Text(f"{len(found)} numbers: {told}", style="bold"), soft_wrap=True)
    console.print(Text("counts, quartiles, extremes and ranges: --json", style="dim"))
    for remark in remarks:
        console.print(Text(remark, style="dim"), soft_wrap=True)


def _title(table: str) -> str:
    return shipped.tables()[table].title


def _ours(one: Beside) -> str:
    if one.ours is None:
        return "-"
    ends = ""
    if one.ours.low is not None and one.ours.high is not None:
        ends = f" [{one.ours.low:.3g}, {one.ours.high:.3g}]"
    return f"{one.ours.value:.3g}{ends}"


def _change(one: Beside) -> str:
    if one.change_percent is None:
        return "-"
    ends = "" if one.low is None or one.high is None else f" [{one.low:+.3g}, {one.high:+.3g}]"
    return f"{one.change_percent:+.3g}%{ends}"


def _figure(found: Sequence[Beside], ours: Opened, asked: Asked) -> None:
    rows = [
        forest.ForestRow(
            label=f"workload {one.cell['workload']}, {_nodes(one.cell['cluster_size'])}, {one.statistic}",
            value=one.change_percent, low=one.low, high=one.high, verdict=one.verdict, decided=one.verdict == "differs",
        )
        for one in found
        if one.table == SUMMARY and one.statistic in ("mean", "50%") and one.change_percent is not None
    ]  # fmt: skip
    if not rows:
        raise StudyError("no mean or median can be drawn", "leave --figure out")
    title = f"Execution time of {ours.study.study.name} beside {RICHARDSON}"
    if asked.figure is not None:
        caption = "100 (ours / published - 1); the intervals hold ours and the rounding of the printed digits"
        forest.write(forest.spec(rows, title, caption, None), asked.figure)


def _nodes(size: str) -> str:
    return "all sizes" if size == OVERALL else "1 node" if size == "1" else f"{size} nodes"
