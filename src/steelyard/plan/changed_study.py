"""Compatibility of a changed study with the trials in its store. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from steelyard.judging.stopping import rule_of
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord

BESIDE_TRIALS: Final = ("study", "limits", "analysis", "server_warm_up")
"""Sections that do not decide a trial's treatment, id or seed."""


def changes_refused(before: Study, after: Study, plan: Plan, records: Sequence[TrialRecord]) -> tuple[StudyError, ...]:
    """The error of `refuse_change`, if there is one."""
    try:
        refuse_change(before, after, plan, records)
    except StudyError as error:
        return (error,)
    return ()


def refuse_change(before: Study, after: Study, plan: Plan, records: Sequence[TrialRecord]) -> None:
    """Refuse a change to a study that its store rules out. A study may be widened: more levels, starts or trials. A
    change that would orphan sealed trials is refused, with the difference. So is another stopping rule: one chosen
    after looking at the trials has no known coverage; the trials per start are part of it. Its budgets
    (`design.starts`, `hours`) may change. Raises StudyError."""
    _refuse_looks(before, after, records)
    _refuse_rule(before, after, records)
    _refuse_server_warm_up(before, after, records)
    _refuse_derived(before, after, records)
    seeds = {trial.id: trial.seed for trial in plan.trials}
    orphans = sorted({record.id for record in records if seeds.get(record.id) != record.seed})
    if not orphans:
        return
    count = len(orphans)
    raise StudyError(
        f"the changed study cannot continue this store: {count} sealed trials would lose their treatment or seed",
        "give the changed study another name, or another --store; changes to the sealed trials:\n"
        + (_difference(before, after, without=BESIDE_TRIALS) or _difference(before, after)),
        key="study.name",
        read=after.study.name,
    )


def _refuse_looks(before: Study, after: Study, records: Sequence[TrialRecord]) -> None:
    """Raise StudyError for other looks than the first trial was made under, and for a plan that ends earlier: a user
    who has seen trials could choose the end that pleases."""
    of = before.analysis, after.analysis, before.design, after.design
    changed = {
        "analysis.looks": of[0].looks != of[1].looks,
        "analysis.confidence": of[0].looks == "several" and of[0].confidence != of[1].confidence,
        "design.starts": of[2].until is None and of[3].starts < of[2].starts,
        "design.trials": of[2].until is None and of[3].trials < of[2].trials,
    }
    for key in (key for key, is_changed in changed.items() if is_changed and records):
        raise StudyError(
            f"{key} is not what the store's {len(records)} sealed trials were made under: choosing looks or the end "
            "by the results raises the error rate above the stated one",
            "restore it, or give the study another name; the report of an unfinished one states its looks",
            key=key,
        )


def _refuse_rule(before: Study, after: Study, records: Sequence[TrialRecord]) -> None:
    """Raise StudyError if the stopping rule differs: it must be fixed before the first trial."""
    old, new = rule_of(before), rule_of(after)
    as_many = before.design.trials == after.design.trials
    if not records or old is new is None or (old is not None and old.same_question(new) and as_many):
        return
    raise StudyError(
        f"the stopping rule, or the trials of a start that it judges, is not what the store's {len(records)} sealed "
        "trials were made under",
        "put [design.until], design.trials and the keys of [analysis] back as they were (design.starts and until.hours "
        "may change), or give the study another name; the difference:\n" + _difference(before, after),
        key="design.until",
    )


def _refuse_server_warm_up(before: Study, after: Study, records: Sequence[TrialRecord]) -> None:
    """Raise StudyError if the file asks for another server warm-up than the sealed trials had. A file that says nothing
    of it continues as the store began."""
    old, new = before.server_warm_up, after.server_warm_up
    same = new.mode in {"auto", old.mode}
    alike = old.mode == "off" or all(
        getattr(new, name) == getattr(old, name) for name in new.model_fields_set - {"mode"}
    )
    if not records or "server_warm_up" not in after.model_fields_set or (same and alike):
        return
    raise StudyError(
        f"[server_warm_up] is not what the store's {len(records)} sealed trials were made with",
        "restore it, or give the study another name; the difference:\n" + _difference(before, after),
        key="server_warm_up",
    )


def _refuse_derived(before: Study, after: Study, records: Sequence[TrialRecord]) -> None:
    """Raise StudyError for another rule of a threshold that sealed trials have: their ids do not show it."""
    for name in {record.derived.level for record in records if record.derived}:
        if before.derived.get(name) != after.derived.get(name):
            raise StudyError(
                f"[derived.{name}] is not what the store's sealed trials had their threshold from",
                "restore it, or give the study another name; the difference:\n" + _difference(before, after),
                key=f"derived.{name}",
            )


def _difference(before: Study, after: Study, without: Sequence[str] = ()) -> str:
    """The difference of two studies, line by line, with a line around each change; `without` these sections."""
    left_out = set(without)
    old = before.model_dump_json(indent=1, exclude=left_out).splitlines()
    new = after.model_dump_json(indent=1, exclude=left_out).splitlines()
    lines = difflib.unified_diff(old, new, "stored study", "this file", n=1, lineterm="")
    return "\n".join(line for line in lines if line.strip())
