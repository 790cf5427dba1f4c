"""Words of earlier versions in study files, plans and records: read, and hashed as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard import study as studies
from steelyard.judging.noise_floor import Circumstances
from steelyard.judging.stopping import Decision, Rule
from steelyard.model import former_words
from steelyard.model.calibration import Calibration
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Limits, Study
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.plan import expand
from steelyard.store import Store, StoreWriter, layout
from steelyard.study import settings_hash
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, study

FILE = """
[study]
name = "a"
question = "b?"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
[load]
operations = 10
[factors]
nodes = [1, 3]
data.state = ["thaw", "continue"]
"""
LISTED = """
[study]
name = "a"
question = "b?"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
[load]
operations = 10
[design]
kind = "listed"
[[design.treatments]]
data.state = "thaw"
[[design.treatments]]
data.state = "continue"
"""
PLAIN = FILE.partition("[factors]")[0] + '[data]\nstate = "thaw"\n'


@pytest.mark.parametrize("text", [FILE, LISTED, PLAIN])
def test_both_words_of_a_study_file_are_one_study_with_the_same_ids(text: str) -> None:
    former, today = studies.read_text(text), studies.read_text(text.replace("thaw", "restore"))
    assert former == today
    assert expand(former) == expand(today)
    assert "thaw" not in expand(today).model_dump_json()


def test_ids_are_those_of_the_version_that_said_thaw() -> None:
    """From commit cb4fe53."""
    trials = [(trial.id, trial.start) for trial in expand(studies.read_text(FILE)).trials]
    assert [trial for trial in trials if trial[1] == "b01-3ed04028c925"][:2] == [
        ("737378bb1574-s1-t1", "b01-3ed04028c925"),
        ("737378bb1574-s1-t2", "b01-3ed04028c925"),
    ]


def test_both_words_at_once_are_one_level_twice() -> None:
    with pytest.raises(StudyError, match="is listed twice"):
        studies.read_text(FILE.replace('"continue"', '"restore"'))


def thawed(text: str) -> str:
    return text.replace('"restore"', '"thaw"').replace('"restored"', '"thawed"')


def test_a_store_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    asked = study(factors={"data.state": ["restore", "continue"]})
    plan = plan_of(asked)
    sealed = record(plan.trials[0]).model_copy(update={"data": "restored"})
    with StoreWriter(tmp_path, "fake") as writer:
        writer.intend(asked, "", plan)
        writer.draft(sealed.id, 1).seal(sealed)
        folder = writer.folder
    # Journals of earlier versions do not hold the checksums of study and plan.
    (folder / layout.EVENTS).write_text("")
    written = [folder / layout.STUDY_JSON, folder / layout.PLAN, *folder.glob("trials/*/trial.json")]
    for path in written:
        before = path.read_text()
        path.write_text(thawed(before))
        assert path.read_text() != before
    store = Store(folder)
    (found,) = store.trials()
    assert (store.study, store.plan) == (asked, plan)
    assert (found.settings, found.treatment, found.data) == (sealed.settings, sealed.treatment, "restored")
    assert found.id.startswith(settings_hash(found.settings.root))


def test_settings_are_hashed_as_they_were_first_written() -> None:
    today = {"data": {"state": "restore", "x": 1}, "site": {"name": "local"}}
    former = {"data": {"state": "thaw", "x": 1}, "site": {"name": "local"}}
    assert former_words.settings_as_first_written(today) == former
    assert former_words.settings(former) == today
    assert settings_hash(today) == settings_hash(former)
    for odd in ({}, {"data": {}}, {"data": 3}, {"data": {"state": ["thaw"]}}):
        assert former_words.settings(odd) == odd


def test_limits_and_calibrations_have_their_former_key() -> None:
    assert Limits.model_validate({"foreign_cpu_fraction": 0.7}).background_cpu_fraction == 0.7
    assert Study.model_validate({**json.loads(study().model_dump_json()), "limits": {"foreign_cpu_fraction": 1}})
    with pytest.raises(ValueError, match="foreign_cpu_fraction"):
        Limits.model_validate({"foreign_cpu_fraction": 0.7, "background_cpu_fraction": 0.7})
    kept = {
        "format": 1, "made_s": 1.0, "machine": {}, "agent": "a", "agent_sha256": "b", "optimised": True, "ceilings": [],
        "slip": {}, "memory_bytes": 1, "steal_fraction": 0.0, "foreign_cpu_fraction": 0.3,
    }  # fmt: skip
    assert former_words.keys(kept, former_words.LIMITS)["background_cpu_fraction"] == 0.3
    assert "background_cpu_fraction" in Calibration.model_fields


def test_reasons_have_their_former_name() -> None:
    assert Reason.model_validate({"kind": "foreign load or steal"}).kind is ReasonKind.STEAL
    assert json.loads(Reason(kind=ReasonKind.STEAL).model_dump_json())["kind"] == "background load or steal"
    with pytest.raises(ValueError, match="no reason"):
        ReasonKind("no reason")


def test_decisions_and_floors_have_their_former_words() -> None:
    rule = Rule(response="a", width_percent=1, least_starts=6, confidence=0.95, warm_up_trials=0, attempts=3)
    said = {"rule": rule, "go_on": True, "why": "floor", "blocks": 1, "cap": 9, "needed": 6, "hours": 1.0, "cells": ()}
    assert Decision.model_validate(said).why == "least-starts"
    held = Circumstances(
        machines=(), site="a", system="b", engine="c", loop="closed", nodes=1, settings={"data.state": "thaw"}
    )
    assert held.settings == {"data.state": "restore"}


def test_no_value_is_left_that_takes_a_former_word() -> None:
    """Every model that holds settings or levels by name reads them in the words of today."""
    former = {"data.state": "thaw"}
    planned = plan_of(study()).trials[0]
    for model, value in ((PlannedTrial, planned), (TrialRecord, record(planned))):
        read = model.model_validate({**value.model_dump(), "treatment": former})
        assert read.treatment == {"data.state": "restore"}
    plan = Plan.model_validate({**plan_of(study()).model_dump(), "factors": {"data.state": ["thaw", "reload"]}})
    assert plan.factors == {"data.state": ("restore", "reload")}


LIMITED = FILE.partition("[factors]")[0] + '[site]\nname = "local"\nmemory_mb = 512\ncpus = 1.5\n'


def test_limits_of_nodes_have_two_names_and_one_id() -> None:
    today = LIMITED.replace("memory_mb = 512\ncpus = 1.5\n", "[node]\nmemory_mb = 512\ncpus = 1.5\n")
    former, current = expand(studies.read_text(LIMITED)), expand(studies.read_text(today))
    assert [(trial.id, trial.start, trial.settings) for trial in former.trials] == [
        (trial.id, trial.start, trial.settings) for trial in current.trials
    ]
    settings = current.trials[0].settings
    assert settings.node.cpus_from == "warm"
    assert (settings.node.memory_mb, settings.node.cpus, settings.root["site"]["memory_mb"]) == (512, 1.5, None)
    factor = expand(studies.read_text(f"{LIMITED}[factors]\nsite.memory_mb = [512, 600]\n"))
    assert factor.trials[0].settings.node.memory_mb in (512, 600)
    assert {trial.id for trial in former.trials} < {trial.id for trial in factor.trials}


def test_ids_of_limited_nodes_are_those_of_the_version_that_named_them_otherwise() -> None:
    """From commit da0adb1, where processors were limited from the start."""
    from_start = f'{LIMITED}[node]\ncpus_from = "start"\n'
    assert [(trial.id, trial.start) for trial in expand(studies.read_text(from_start)).trials[:1]] == [
        ("e456042ce399-s1-t1", "b01-367b6d6f0b69"),
    ]


def test_settings_of_records_have_their_limits_at_the_node() -> None:
    former = {"site": {"name": "local", "memory_mb": 512, "cpus": None}, "system": {"name": "simulated"}}
    today = former_words.settings(former)
    assert today["node"] == {"memory_mb": 512}
    assert today["site"] == {"name": "local", "memory_mb": None, "cpus": None}
    assert settings_hash(today) == settings_hash(former)
    assert former_words.settings({"site": {"name": "mine", "memory_mb": 512}}) == {
        "site": {"name": "mine", "memory_mb": 512}
    }


def test_a_limit_under_both_names_is_refused_if_they_disagree() -> None:
    with pytest.raises(StudyError, match=r"site\.memory_mb = 512: node\.memory_mb = 600 says otherwise"):
        studies.read_text(f"{LIMITED}[node]\nmemory_mb = 600\n")
    assert studies.read_text(f"{LIMITED}[node]\nmemory_mb = 512\n")


def test_kept_noise_floors_have_their_limits_at_the_node() -> None:
    held = Circumstances(
        machines=(), site="local", system="b", engine="c", loop="closed", nodes=1, settings={"site.memory_mb": "512"}
    )
    assert held.settings == {"site.memory_mb": "", "node.memory_mb": "512"}
