"""Own treatments as the forms of published tables see them: their facets, and one number each with its interval."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.analysis import estimates
from steelyard.analysis.analyse import frame_of
from steelyard.analysis.effects import cohens_d
from steelyard.analysis.frame import RESPONSES, TrialFrame
from steelyard.analysis.resources import SAMPLED, SHARED, sampled
from steelyard.analysis.results import UNITS, label
from steelyard.judging.percentile_support import response_of
from steelyard.model.errors import StudyError
from steelyard.model.estimate import Estimate
from steelyard.model.study import Level
from steelyard.model.trial import Phase, TrialRecord
from steelyard.reference.comparison import Beside
from steelyard.reference.mapping import PLACED, Own, clashes, lay_table
from steelyard.reference.tables import Table

if TYPE_CHECKING:
    from steelyard.cli.commands.compare import Opened

PROPORTIONS = ("read_proportion", "write_proportion", "update_proportion", "insert_proportion", "scan_proportion",
               "read_modify_write_proportion")  # fmt: skip
Values = dict[tuple[str, str], dict[str, list[float]]]
"""(treatment, response) to the values of its trials by start."""


def lay(
    tables: Sequence[Table], ours: Opened, fixed: Mapping[str, Level], placed: Mapping[str, str]
) -> tuple[list[Beside], list[Own]]:
    """Every number of the tables with ours beside it. `placed`: column that nothing of ours decides, to the level that
    ours are laid beside. Raises StudyError where two treatments fit the same number, or no valid trial is left."""
    forms = [table.form for table in tables if table.form]
    wanted = {form.response for form in forms} | {one.response for form in forms for one in form.numbers}
    frame = frame_of(ours.records, ours.study)
    own, values = _own(ours, frame, fixed, wanted)
    beside = {f"{PLACED}{column}": level for column, level in placed.items()}
    own = [replace(one, facets={**one.facets, **beside}) for one in own]
    if not own:
        raise StudyError("no cell has valid trials", "`steelyard status STORE` says why")
    for table in tables:
        both = clashes(table, own)
        if both is not None:
            raise StudyError(
                f"{both[0].name} and {both[1].name} would be laid beside the same number of {table.name}",
                f"choose one: --a {_told_apart(frame, *both)}=LEVEL",
                key="--a",
            )
    confidence = ours.study.analysis.confidence

    def contrasted(one: Own, other: Own, response: str) -> Estimate | None:
        first, second = (
            [value for start in values.get((side.name, response), {}).values() for value in start]
            for side in (one, other)
        )
        return cohens_d(second, first, confidence, "trials, counted as independent") if first and second else None

    return [one for table in tables for one in lay_table(table, own, contrasted)], own


def _told_apart(frame: TrialFrame, one: Own, other: Own) -> str:
    """The factor in which two treatments differ."""
    named = {label(treatment): treatment for treatment in frame.treatments()}
    first, second = named[one.name], named[other.name]
    return next(name for name in frame.names if first.get(name) != second.get(name))


def _own(ours: Opened, frame: TrialFrame, fixed: Mapping[str, Level], wanted: set[str]) -> tuple[list[Own], Values]:
    by_id = {(one.id, one.attempt): one for one in ours.records}
    found: list[Own] = []
    values: Values = {}
    for treatment in frame.treatments():
        if any(treatment.get(name) != level for name, level in fixed.items()):
            continue
        used = frame.values("operations", treatment)
        records = [by_id[key] for key in zip(used["trial_id"], used["attempt"], strict=True)]
        if not records:
            continue
        name = label(treatment)
        for one in records:
            for response, value in _values(ours, one, wanted):
                values.setdefault((name, response), {}).setdefault(one.start, []).append(value)
        numbers = _numbers(name, values, ours.study.analysis.confidence)
        trials = {
            response: tuple(value for start in by_start.values() for value in start)
            for (treatment_name, response), by_start in values.items()
            if treatment_name == name
        }
        found.append(Own(name, facets(ours, records), len(records), numbers, _shared(records), trials))
    return found, values


def _values(ours: Opened, record: TrialRecord, wanted: Set[str]) -> Iterator[tuple[str, float]]:
    """Of a trial every response that is wanted and that it has; its samples are read once, and only if wanted."""
    for response in sorted(wanted & set(RESPONSES)):
        value = response_of(record, response)
        if value is not None:
            yield response, float(value)
    measured = [one for one in record.phases if one.phase == Phase.MEASURE and one.left_s is not None]
    if not measured or not wanted & set(SAMPLED):
        return
    samples = ours.store.samples(record)
    nodes = [str(node) for node in samples["node"].unique() if not str(node).startswith("l")]
    for response in sorted(wanted & set(SAMPLED)):
        found = sampled(response, samples, nodes, measured[0].entered_s, float(measured[-1].left_s or 0.0))
        if found is not None:
            yield response, found


def _numbers(name: str, values: Values, confidence: float) -> dict[tuple[str, str], Estimate]:
    """Mean over start means where there are two starts, else over trials; median and standard deviation over trials."""
    found: dict[tuple[str, str], Estimate] = {}
    for (treatment, response), by_start in values.items():
        if treatment != name:
            continue
        every = [value for start in by_start.values() for value in start]
        means = [statistics.fmean(start) for start in by_start.values()]
        unit = UNITS.get(response, "% of the processors" if response == "cpu_percent" else "KiB/s")
        if len(means) > 1:
            found[response, "mean"] = estimates.mean(means, unit, confidence, "start means")
        else:
            found[response, "mean"] = estimates.mean(every, unit, confidence, "trials of one start")
        found[response, "50%"] = estimates.median(every, unit, confidence)
        if len(every) > 1:
            found[response, "sd"] = Estimate(
                value=estimates.deviation(every), confidence=confidence, n=len(every), unit=unit,
                method="standard deviation over trials, without an interval",
            )  # fmt: skip
    return found


def _shared(records: Sequence[TrialRecord]) -> dict[str, tuple[str, ...]]:
    shares = {share for one in records for share in one.shares}
    return {
        response: (
            f"the nodes share one {'processor' if thing == 'cpu' else thing}: ours is of the whole machine, load and "
            "laboratory included",
        )
        for response, thing in SHARED.items()
        if thing in shares
    }


def facets(ours: Opened, records: Sequence[TrialRecord]) -> dict[str, str]:
    """Settings as text by dotted name, and what follows from them; those on which the trials differ are left out."""
    each = [{**_flat(one.settings), **_derived(one.settings)} for one in records]
    found = {name: text for name, text in each[0].items() if all(other.get(name) == text for other in each)}
    platform = platform_of(ours.store.facts(records[0]))
    return found | ({"platform": platform} if platform else {})


def _flat(tree: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif value is not None:
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            found[f"{before}{name}"] = (
                f"{value:.12g}" if plain else value if isinstance(value, str) else json.dumps(value)
            )
    return found


def _derived(settings: Mapping[str, Any]) -> dict[str, str]:
    workload, load, system = settings["workload"], settings["load"], settings["system"]
    name = str(workload["name"])
    read, write = load.get("read_consistency"), load.get("write_consistency")
    found = {
        "workload.letter": name.rsplit("-", 1)[-1].upper(),
        "load.consistency": str(read) if read == write else f"{read} for reads and {write} for writes",
        "system.version": f"{system['name']} {system.get('version', '')}".strip(),
        "site.docker": "yes" if settings["site"]["name"] == "docker" else "no",
    }
    shares = {key: float(workload.get(key) or 0.0) for key in PROPORTIONS}
    if sum(shares.values()) > 0:
        found["workload.read_fraction"] = f"{shares['read_proportion'] / sum(shares.values()):.12g}"
    return found


def platform_of(facts: Mapping[str, Mapping[str, str]]) -> str | None:
    """What the database nodes are, by their facts: a board's name, or site, processor and what stands in between."""
    told = next((one for name, one in facts.items() if not name.startswith(("system:", "l", "machine"))), None)
    if told is None:
        return None
    model = told.get("board") or told.get("cpu_model", "")
    if "raspberry pi 2" in model.casefold():
        return "raspberry-pi-2"
    parts = [told.get("site", ""), model]
    return " on ".join(part for part in parts if part) or None
