"""`steelyard status STORE`: the progress of a study, its failures and their causes, on one screen."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis.cells import cell_values, objective_cells
from steelyard.analysis.narrative.carried import carried
from steelyard.analysis.statistics.look import row_of
from steelyard.analysis.wording import mean_of
from steelyard.cli.signature import Json, StoreFolder
from steelyard.cli.terminal.output import (
    data_console,
    message_console,
    print_table,
    print_wrapped,
    say,
    warn_of_damages,
)
from steelyard.format import count, treatment_label
from steelyard.judging.attempts import attempts_by_id, settled
from steelyard.judging.derived import not_run
from steelyard.judging.looks import look_of
from steelyard.judging.stopping import Decision, decision_of, not_needed
from steelyard.leases import records as lease_records
from steelyard.model.errors import SteelyardError
from steelyard.model.responses import label_of
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node.folders import state_folder
from steelyard.progress.reason_words import ReasonGroup, groups, narrowing_words, other_limits, waiting_words
from steelyard.progress.session_state import (
    FAILED,
    IN_PROGRESS,
    INTERRUPTED,
    LOST_S,
    SILENT_S,
    began_of,
    command_of,
    journal_words,
    session_state,
    writer_of,
)
from steelyard.shown_text import json_text
from steelyard.store import layout
from steelyard.store.journal import Entry
from steelyard.store.measured_again import MeasuredAgain
from steelyard.store.modelled import open_store

if TYPE_CHECKING:
    from steelyard.progress.state import Live

EXAMPLES = (
    ("steelyard status store/quickstart", "Progress, and why trials are not valid."),
    ("steelyard status store/quickstart --all", "The same with every reason in full."),
)
MOST_MEASURED_AGAIN = 5
"""Trials that were measured again, without `--all`."""
NOT_CHECKED = "tables, facts and logs of the trials are not checked here: `steelyard verify"


def status(
    path: StoreFolder,
    everything: Annotated[bool, typer.Option("--all", help="Print every reason in full, cell by cell.")] = False,
    as_json: Json = False,
) -> int:
    """Print where the study is. Returns 0 when complete and valid, 1 when some trials are invalid or missing, or a file
    of the store is damaged. What a stopping rule made unnecessary is neither."""
    store = open_store(path)
    records = store.trials()
    plan = store.plan
    study = store.study
    limit = study.limits.attempts
    by_trial = attempts_by_id(records)
    planned = plan.trials if plan else ()
    done = sum(settled(by_trial.get(trial.id, []), limit) for trial in planned)
    decision = decision_of(plan, records, study)
    look = look_of(plan, records, study, store.look, decision)
    spared = len(not_needed(plan, records, decision)) if plan and decision else 0
    never = not_run(study, plan, records) if plan else {}
    missing = len(planned) - done - spared - len(never)
    journal = store.journal()
    live = _live(store.folder)
    reasons = Counter(str(reason.kind) for record in records for reason in record.verdict.reasons)
    summary: dict[str, Any] = {
        "study": study.study.name,
        "store": str(store.folder),
        "planned": len(planned) if plan else None,
        "done": done,
        "not_needed": spared,
        "not_run": list(dict.fromkeys(never.values())),
        "look": row_of(look).model_dump(mode="json"),
        "until": decision.model_dump(mode="json") if decision else None,
        "valid": sum(record.verdict.outcome == "valid" for record in records),
        "attempts": len(records),
        "reasons": dict(reasons),
        "reason_groups": [
            group.model_dump(mode="json")
            for group in groups(reason for record in records for reason in record.verdict.reasons)
        ],
        **_session(store.folder, study.study.name, live, journal, len(planned), missing),
        "last_event": {**journal[-1].fields(), "words": journal_words(journal[-1].event)} if journal else None,
        "waiting": _waiting(live),
        "objective": study.analysis.objective or None,
        "cells": _cells(records, study, intervals=as_json or _may_load(study, store.folder)),
        "measured_again": [again.model_dump(mode="json") for again in store.measured_again],
        "other_limits": other_limits(records, study.limits),
        "limits": (),
        "damages": [damage.model_dump(mode="json") for damage in store.damages],
    }
    if planned and not missing and summary["state"] != IN_PROGRESS:
        from steelyard.reading.reading import limits  # only then: `status` may be asked for while a study is measured

        summary["limits"] = limits(store, records)
    warn_of_damages(message_console(), store.damages)
    if as_json:
        print(json_text(summary, indent=1))
    else:
        _draw(summary, decision, data_console(), everything=everything)
    whole = all(damage.harmless for damage in store.damages)
    return 0 if whole and planned and summary["valid"] == len(planned) - spared - len(never) else 1


def _may_load(study: Study, folder: Path) -> bool:
    """Whether the answer has its interval on the screen, too: of searches, while nothing is measured here."""
    return study.load.schedule == "search" and writer_of(folder) is None


def _live(folder: Path) -> Live | None:
    """Latest state of a study in progress. Without a live file nothing is loaded that would read it."""
    if not (folder / layout.LIVE).is_file():
        return None
    from steelyard.progress import live_file

    return live_file.read(folder)


def _session(
    folder: Path, study: str, live: Live | None, journal: Sequence[Entry], planned: int, missing: int
) -> dict[str, Any]:
    """State of the study, why, the process that writes the store now, and the command of the newest session."""
    silent_s = None if live is None else max(0.0, time.time() - live.t_s)
    process = writer_of(folder)
    if process is not None:
        return {"state": IN_PROGRESS, "why": f"process {process}", "process": process, "command": ()}
    if silent_s is not None and SILENT_S <= silent_s < LOST_S:
        # On this machine a living study holds the lock; of a copy that is still written, the live file is new.
        silent_s = None
    if _was_killed(study, began_of(journal)):
        silent_s = None
    state, why = session_state(journal, planned=planned, missing=missing, silent_s=silent_s)
    if state == IN_PROGRESS:
        why = "no process on this machine writes to the store: the study runs elsewhere, or was killed seconds ago"
    command = command_of(journal) if state in (INTERRUPTED, FAILED) else ()
    return {"state": state, "why": why, "process": None, "command": command}


def _was_killed(study: str, began_s: float) -> bool:
    """Whether a lease that this study made since its newest session began is left over here, whose owner no longer
    runs. An older one is of another session, or of another store's study of this name."""
    try:
        ours = [record for _, record in lease_records.records(state_folder()) if record.study == study]
    except SteelyardError:
        return False  # `clean` says what is wrong with it
    owners = [record.owner for record in ours if record.created.timestamp() >= began_s]
    return bool(owners) and not any(lease_records.lives(owner) for owner in owners)


def _draw_session(summary: Mapping[str, Any], console: Console) -> None:
    """State of the study: alive, or how it ended and what to do."""
    style = {FAILED: "bold red", INTERRUPTED: "bold yellow"}.get(summary["state"], "")
    print_wrapped(Text.assemble((summary["state"], style), f": {summary['why']}" if summary["why"] else ""), console)
    if summary["command"]:
        words = summary["command"][1:]
        known = shlex.join(("steelyard", *words)) if "run" in words else "the journal does not name the study file"
        say(console, f"  resume: {known}")
    if summary["state"] == INTERRUPTED and "killed" in summary["why"]:
        say(console, "  leftovers of a killed session are released then: `steelyard clean --dry-run` lists them")


def _waiting(live: Live | None) -> str:
    """Busy processes, while the study waits for a quiet machine; otherwise empty."""
    now_s = time.time()
    if live is None or live.quiet is None or now_s - live.t_s > LOST_S:
        return ""
    return waiting_words(live.quiet.reasons, now_s - live.quiet.since_s, live.quiet.limit_s)


def _cells(records: tuple[TrialRecord, ...], study: Study, *, intervals: bool) -> list[dict[str, Any]]:
    """Each cell as the report counts it: used trials, their starts, and the number that its answer quotes, with its
    interval where that is shown."""
    attempts: dict[str, list[TrialRecord]] = {}
    for record in records:
        attempts.setdefault(treatment_label(record.treatment), []).append(record)
    rows = []
    verdicts = objective_cells(records, study)
    for known in cell_values(records, study, intervals=intervals):
        members = attempts.get(known.cell, [])
        why = Counter(f"{reason.kind} {reason.detail}".strip() for r in members for reason in r.verdict.reasons)
        rows.append(
            {
                "cell": known.cell,
                "attempts_not_valid": sum(record.verdict.outcome != "valid" for record in members),
                "valid": sum(record.verdict.outcome == "valid" for record in members),
                "n": known.n,
                "starts": known.starts,
                "response": known.response,
                "value": None if known.value is None else known.value.model_dump(mode="json"),
                "value_text": known.value_text,
                "carried": carried(known.treatment, members, known.value, known.n, known.starts),
                "not_valid": dict(why),
                "objective": verdicts.get(known.cell, ("undecided", ""))[0] if verdicts else None,
            }
        )
    return rows


def _draw_head(summary: Mapping[str, Any], console: Console) -> None:
    """The study's name, and warnings for the reader."""
    console.print(summary["study"], style="bold", highlight=False)
    for why in summary["not_run"]:
        print_wrapped(Text(f"not run: {why}", style="bold yellow"), console)
    if summary["look"]["sentence"]:
        print_wrapped(Text(summary["look"]["sentence"], style="bold yellow"), console)


def _draw(summary: dict[str, Any], decision: Decision | None, console: Console, *, everything: bool) -> None:
    _draw_head(summary, console)
    spared = f", {summary['not_needed']} not needed" if summary["not_needed"] else ""
    of = "of at most" if decision is not None and decision.go_on else "of"
    done = "trials done: unknown without the plan"
    if summary["planned"] is not None:
        done = f"{summary['done']} {of} {summary['planned']} trials done{spared}"
    say(console, f"{done}; {summary['valid']} valid in {count(summary['attempts'], 'attempt')}")
    if decision is not None:
        say(console, f"until {decision.target}: {decision.sentence}")
    _draw_session(summary, console)
    event = summary["last_event"]
    if event:
        when = f" at {datetime.fromtimestamp(event['t_s']):%Y-%m-%d %H:%M:%S}" if event["t_s"] is not None else ""
        say(console, f"last event: {event['words']}{when}")
    for sentence in summary["other_limits"]:
        print_wrapped(sentence, console)
    if summary["waiting"]:
        print_wrapped(summary["waiting"], console)
    if summary["cells"]:
        _draw_cells(summary, decision, console)
    _draw_limits(summary["limits"], console)
    if summary["reason_groups"]:
        say(console, "\nNot valid because of:")
        for item in summary["reason_groups"]:
            print_wrapped(ReasonGroup.model_validate(item).sentence, console, indent=2)
    if everything:
        for cell in summary["cells"]:
            for reason, times in cell["not_valid"].items():
                say(console, f"{cell['cell']}: {times} x {reason}")
    elif summary["reason_groups"]:
        say(console, "Every reason in full: --all", style="dim")
    _draw_measured_again(summary["measured_again"], console, everything=everything)


def _draw_cells(summary: dict[str, Any], decision: Decision | None, console: Console) -> None:
    """The table of cells, what searches found, and notes on both."""
    say(console)
    print_table(_table(summary, decision), console)
    for sentence in filter(None, (cell["carried"] for cell in summary["cells"])):
        print_wrapped(sentence, console)
    response = summary["cells"][0]["response"]
    about = f"{mean_of(response)}: {label_of(response)} of these, as in the report"
    note = f"used: valid and after the warm-up trials; {about}"
    print_wrapped(Text(note, style="dim"), console)
    print_wrapped(Text(f"{NOT_CHECKED} {summary['store']}` checks them", style="dim"), console)


def _draw_limits(limits: Sequence[str], console: Console) -> None:
    if limits:
        from steelyard.cli.terminal.answer_output import say_limits

        say_limits(console, limits)


def _draw_measured_again(measured_again: list[dict[str, Any]], console: Console, *, everything: bool) -> None:
    if not measured_again:
        return
    say(console, "\nMeasured again:")
    shown = measured_again if everything else measured_again[:MOST_MEASURED_AGAIN]
    for item in shown:
        print_wrapped(MeasuredAgain.model_validate(item).sentence, console, indent=2)
    if len(shown) < len(measured_again):
        say(console, f"  and {len(measured_again) - len(shown)} more: --all")


def _table(summary: dict[str, Any], decision: Decision | None) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    value_head = mean_of(summary["cells"][0]["response"])
    for head in ("cell", "valid", "not valid", "used", "starts", value_head):
        table.add_column(head, justify="left" if head == "cell" else "right")
    known = {treatment_label(cell.treatment): cell for cell in decision.cells} if decision else {}
    if known:
        table.add_column("interval of the mean")
    if summary["objective"]:
        table.add_column(summary["objective"])
    for cell in summary["cells"]:
        judged = known.get(cell["cell"])
        interval = [narrowing_words(judged, cell["starts"]) if judged else "-"] if known else []
        lost = str(cell["attempts_not_valid"] or "-")
        numbers = (str(cell["valid"]), lost, str(cell["n"]), str(cell["starts"]))
        table.add_row(
            cell["cell"],
            *numbers,
            cell["value_text"] or "-",
            *interval,
            *([cell["objective"] or "-"] if summary["objective"] else []),
        )
    return table
