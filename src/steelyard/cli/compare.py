"""`steelyard compare A B`: two stores, or two treatments of one; what changed, how sure that is, what else differs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from steelyard.analysis import apart, noise
from steelyard.analysis.analyse import frame_of
from steelyard.analysis.apart import Difference
from steelyard.analysis.frame import RESPONSES
from steelyard.analysis.results import LABELS, UNITS, label
from steelyard.analysis.sides import DECIDED, Contrast, Side, contrasts, limits_percent, pair
from steelyard.cli.terminal.comparison_table import draw, footer
from steelyard.format import count
from steelyard.model.errors import StoreError, StudyError
from steelyard.model.study import Level, Study
from steelyard.model.trial import TrialRecord
from steelyard.report.figures import forest
from steelyard.store.read import Store, open_store

EXIT_DECIDED, EXIT_UNDECIDED = 0, 1
SHORT = {"throughput": "throughput_per_s", "time": "execution_time_ms", "execution_time": "execution_time_ms",
         "p99": "response_ms_p99", "p95": "response_ms_p95", "p50": "response_ms_p50"}  # fmt: skip
MOST_DIFFERENCES = 12
"""Lines of a kind on the screen; `--json` has all."""


@dataclass(frozen=True)
class Opened:
    """A store with what was read of it."""

    store: Store
    study: Study
    records: tuple[TrialRecord, ...]


@dataclass(frozen=True)
class Asked:
    """The command line."""

    a: str
    b: str | None
    fixed_a: tuple[str, ...] = ()
    fixed_b: tuple[str, ...] = ()
    response: str | None = None
    margin_percent: float | None = None
    figure: Path | None = None
    as_json: bool = False


def compare(asked: Asked, console: Console) -> int:
    """Carry out. Returns 0 if every comparison is decided (or, beside a reference, agrees), else 1.

    Raises StudyError for what cannot be compared, StoreError for what cannot be read.
    """
    if asked.b is not None and not _is_store(asked.b):
        from steelyard.cli.compare_published import beside

        return beside(asked, opened(asked.a), console)
    if asked.figure is not None:
        forest.refuse_other(asked.figure)
    first = opened(asked.a)
    if asked.margin_percent is None:
        asked = replace(asked, margin_percent=first.study.analysis.equivalence_margin_percent)
    second = first if asked.b is None else opened(asked.b)
    a, b = _sides(first, second, asked)
    response = response_named(asked.response, first.study)
    found = pair(a, b)
    confidence = first.study.analysis.confidence
    floors = _floors(first, a, confidence), _floors(second, b, confidence)
    done = contrasts(a, b, found, response, confidence, asked.margin_percent, floors)
    if not done:
        raise StudyError(
            f"no cell has valid trials with a value of {response} on both sides, and one other than 0 on side a",
            "`steelyard status STORE` says what became of the trials; a change from 0 has no ratio",
        )
    differ = _apart(first, second, done)
    said = dict.fromkeys(
        f"{one.study.study.name}: {_floor(one, side, response, floor)}"
        for one, side, floor in ((first, a, floors[0]), (second, b, floors[1]))
    )
    missing = [f"only {a.name} has {label(cell)}" for cell in found.only_a]
    missing += [f"only {b.name} has {label(cell)}" for cell in found.only_b]
    missing += _in_both(first, second)
    if asked.as_json:
        print(json.dumps(_as_json(a, b, done, differ, said, missing), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        draw(a, b, done, console)
        console.print(Text(footer(done, floors, _designs(first, second, a, b)), style="dim"), soft_wrap=True)
        _remarks(differ, missing, console)
    if asked.figure is not None:
        _figure(a, b, done, asked)
    return EXIT_DECIDED if all(one.verdict in DECIDED for one in done) else EXIT_UNDECIDED


def _in_both(first: Opened, second: Opened) -> list[str]:
    """A remark where stores were copied or merged: a trial is no second measurement of itself."""
    if first.store.folder.resolve() == second.store.folder.resolve():
        return []
    of = ({(one.id, one.attempt, one.begun_s) for one in side.records} for side in (first, second))
    same = len(next(of) & next(of))
    what = "trial is" if same == 1 else "trials are"
    return [f"{same} {what} in both stores and counted as independent: they cannot differ"] if same else []


def _floors(one: Opened, side: Side, confidence: float) -> noise.Floors:
    return noise.floors_of(side.frame, one.store.noise_floor(one.records), confidence, one.study)


def _floor(one: Opened, side: Side, response: str, floors: noise.Floors) -> str:
    differing = noise.settings_unlike(one.records, floors)
    return noise.noise_floor(side.frame, response, floors, one.study, differing).sentence


def _designs(first: Opened, second: Opened, a: Side, b: Side) -> list[str]:
    """`10 randomised blocks, seed 7`, of each study."""
    said = []
    for one, side in ((first, a), (second, b)):
        blocks, design = side.frame.data["block"].n_unique(), one.study.design
        order = "randomised" if design.order == "blocks" else "published-order"
        said.append(f"{count(blocks, f'{order} block')}, seed {design.seed}")
    return list(dict.fromkeys(said))


def _is_store(name: str) -> bool:
    return Path(name).exists()


def opened(name: str) -> Opened:
    """A store with its trials. Raises StoreError if it has none."""
    store = open_store(Path(name))
    records = store.trials()
    if not records:
        raise StoreError(f"{store.folder} has no sealed trial yet", "run the study first", path=str(store.folder))
    return Opened(store, store.study, records)


def _sides(first: Opened, second: Opened, asked: Asked) -> tuple[Side, Side]:
    """Both sides with names that tell them apart. Raises StudyError where both are the same trials."""
    frame_a = frame_of(first.records, first.study)
    alone = first.store.folder.resolve() == second.store.folder.resolve()
    frame_b = frame_a if alone else frame_of(second.records, second.study)
    names = dict.fromkeys([*frame_a.names, *frame_b.names])
    fixed_a = levels(asked.fixed_a, frame_a.factors, "--a")
    fixed_b = levels(asked.fixed_b, frame_b.factors, "--b")
    if alone and (fixed_a == fixed_b or not fixed_a or not fixed_b):
        several = {name: known for name, known in frame_a.factors.items() if len(known) > 1}
        name, known = next(iter(several.items()), (next(iter(names), "FACTOR"), ()))
        told = "; ".join(f"{name}: {', '.join(str(one) for one in known)}" for name, known in several.items())
        ends = (known[0], known[-1]) if known else ("LEVEL", "LEVEL")
        raise StudyError(
            "both sides are the same trials: say which treatment is which",
            f"such as --a {name}={ends[0]} --b {name}={ends[1]}; factors: {told or 'none varies'}",
        )
    if alone:
        return Side(label(fixed_a), frame_a, fixed_a), Side(label(fixed_b), frame_a, fixed_b)
    called = [_called(one, fixed) for one, fixed in ((first, fixed_a), (second, fixed_b))]
    folders = [one.store.folder.resolve() for one in (first, second)]
    if called[0] == called[1]:
        called = ["/".join(folder.parts[-2:]) for folder in folders]
    if called[0] == called[1]:
        called = [str(folder) for folder in folders]
    return Side(called[0], frame_a, fixed_a), Side(called[1], frame_b, fixed_b)


def _called(one: Opened, fixed: dict[str, Level]) -> str:
    return one.study.study.name + (f" ({label(fixed)})" if fixed else "")


def levels(texts: Sequence[str], factors: Any, option: str) -> dict[str, Level]:
    """`nodes=1` or `nodes=1,workload=ycsb-a`, repeated as often as wanted. Raises StudyError with what there is."""
    found: dict[str, Level] = {}
    for text in (part for one in texts for part in one.split(",")):
        name, equals, wanted = text.partition("=")
        name, wanted = name.strip(), wanted.strip()
        if not equals:
            raise StudyError(f"{option} {text}", f"FACTOR=LEVEL, such as {option} nodes=3", key=option, read=text)
        if name not in factors:
            near = difflib.get_close_matches(name, factors, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise StudyError(f"{option} {text}: no such factor", f"{hint}there are: {', '.join(factors)}", key=option)
        level = next((one for one in factors[name] if str(one).casefold() == wanted.casefold()), None)
        if level is None:
            known = ", ".join(str(one) for one in factors[name])
            raise StudyError(f"{option} {text}: no such level", f"{name} has: {known}", key=option, read=wanted)
        if found.setdefault(name, level) != level:
            raise StudyError(f"{option} {text}: {name} is {found[name]} already", "one level of a factor", key=option)
    return found


def response_named(name: str | None, study: Study) -> str:
    """The response's name. Raises StudyError with all names."""
    if name is None:
        return study.analysis.response
    full = SHORT.get(name, name)
    if full in RESPONSES:
        return full
    near = difflib.get_close_matches(name, [*RESPONSES, *SHORT], n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise StudyError(
        f"--response {name}: no such response", f"{hint}there are: {', '.join(RESPONSES)}", key="--response"
    )


def _apart(first: Opened, second: Opened, done: Sequence[Contrast]) -> tuple[Difference, ...]:
    asked = {name for one in done for name in {**one.a, **one.b} if one.a.get(name) != one.b.get(name)}
    sides = []
    for opened_side, treatments in ((first, [one.a for one in done]), (second, [one.b for one in done])):
        records = [one for one in opened_side.records if one.verdict.outcome == "valid" and one.treatment in treatments]
        starts = {one.start: one for one in reversed(records)}
        sides.append((records, [opened_side.store.facts(one) for one in starts.values()]))
    (records_a, facts_a), (records_b, facts_b) = sides
    return apart.apart(records_a, records_b, facts_a, facts_b, asked)


def _remarks(differ: Sequence[Difference], others: Sequence[str], console: Console) -> None:
    console.print()
    for sentence in apart.warnings(differ):
        console.print(Text(f"! {sentence}", style="yellow"), soft_wrap=True)
    for kind in dict.fromkeys(one.kind for one in differ if one.kind != "time"):
        ones = [one for one in differ if one.kind == kind]
        head = "compared" if kind == "asked" else f"{kind} differs"
        for one in ones[:MOST_DIFFERENCES]:
            console.print(Text.assemble((f"{head:<16}", "dim"), one.words()), soft_wrap=True)
        if len(ones) > MOST_DIFFERENCES:
            more = len(ones) - MOST_DIFFERENCES
            console.print(Text.assemble((f"{head:<16}", "dim"), f"and {more} more: --json"), soft_wrap=True)
    for text in others:
        console.print(Text(text, style="dim"), soft_wrap=True)


def _as_json(
    a: Side, b: Side, done: Sequence[Contrast], differ: Sequence[Difference], floors: Any, missing: Sequence[str]
) -> dict[str, Any]:
    return {
        "a": {"name": a.name, "fixed": dict(a.fixed)},
        "b": {"name": b.name, "fixed": dict(b.fixed)},
        "unit_of_replication": "start",
        "comparisons": [one.model_dump(mode="json") for one in done],
        "differences": [one.model_dump(mode="json") for one in differ],
        "warnings": list(apart.warnings(differ)),
        "noise_floor": list(floors),
        "missing": list(missing),
    }


def _figure(a: Side, b: Side, done: Sequence[Contrast], asked: Asked) -> None:
    if asked.figure is None:
        return
    rows = [
        forest.ForestRow(
            label=label(one.cell) if one.cell else f"{b.name} against {a.name}",
            value=one.change_percent.value, low=one.change_percent.low, high=one.change_percent.high,
            verdict=one.verdict, decided=one.verdict in DECIDED,
        )
        for one in done
    ]  # fmt: skip
    first = done[0]
    starts = sorted({count for one in done for count in (one.starts_a, one.starts_b)})
    caption = (
        f"{b.name} against {a.name}\n{first.ratio.confidence:.0%} intervals over starts "
        f"({' or '.join(str(count) for count in starts)} a side); unit of the values: {UNITS[first.response]}"
    )
    margin = None if asked.margin_percent is None else limits_percent(asked.margin_percent)
    forest.write(forest.spec(rows, f"Change of {LABELS[first.response]}", caption, margin), asked.figure)
