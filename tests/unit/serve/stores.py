"""Stores for the tests of what is served: written by hand, whole or not."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.store import layout
from tests.unit.lab.fakes import plan_of, study

NOW_S = 1_790_000_000.0
VALID = Verdict(outcome="valid")
VOIDED = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.LAG, measured=14.4, threshold=10.0, unit="ms"),))
FAULT = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="n1 was killed for memory"),))


def a_plan(of: Study | None = None) -> Plan:
    """The plan of the fakes' study: two sizes, two starts of each, two trials in each."""
    return _planned((of or study()).model_dump_json())


@functools.cache
def _planned(written: str) -> Plan:
    plan = plan_of(Study.model_validate_json(written))
    assert isinstance(plan, Plan)
    return plan


def a_record(place: int, verdict: Verdict = VALID, *, attempt: int = 1, of: Study | None = None) -> TrialRecord:
    """The trial at a place of the plan, sealed."""
    planned = a_plan(of).trials[place]
    return TrialRecord(
        **planned.model_dump(exclude={"start"}),
        attempt=attempt,
        study="fake",
        planned_start=planned.start,
        start=planned.start,
        order_in_start=1,
        begun_s=NOW_S + 10 * place + attempt,
        ended_s=NOW_S + 10 * place + attempt + 5,
        verdict=verdict,
        responses=Responses(execution_time_ms=1000.0 + 10 * place, throughput_per_s=100.0 - place),
    )


def write(
    folder: Path,
    records: Sequence[TrialRecord] = (),
    events: Sequence[Mapping[str, Any]] = (),
    *,
    live: Mapping[str, Any] | None = None,
    of: Study | None = None,
) -> Path:
    """A store's folder with these trials and this journal."""
    (folder / layout.TRIALS).mkdir(parents=True, exist_ok=True)
    chosen = of or study()
    (folder / layout.STUDY_JSON).write_text(chosen.model_dump_json(), encoding="utf-8")
    plan = a_plan(of)
    lines = [plan.model_dump_json(exclude={"trials"}), *(trial.model_dump_json() for trial in plan.trials)]
    (folder / layout.PLAN).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for record in records:
        trial = folder / layout.TRIALS / layout.trial_folder(record.id, record.attempt)
        trial.mkdir(exist_ok=True)
        (trial / layout.TRIAL_JSON).write_text(record.model_dump_json(), encoding="utf-8")
    text = "".join(json.dumps({"t_s": NOW_S, **event}) + "\n" for event in events)
    (folder / layout.EVENTS).write_text(text, encoding="utf-8")
    if live is not None:
        said = {"format": layout.LIVE_FORMAT, **live}
        (folder / layout.LIVE).write_text(json.dumps(said), encoding="utf-8")
    return folder
