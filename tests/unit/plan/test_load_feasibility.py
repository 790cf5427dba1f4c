"""Little's law before the start, and other loads that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.plan import expand, load_feasibility
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import estimate
from steelyard.store.write import sha256_of
from tests.unit.plan.test_estimate import planned, record
from tests.unit.study.paper import HEAD, read_text, study

TOO_MUCH = 'schedule = "constant"\nrate_per_s = 200000\nthreads = 512\n[design]\nstarts = 1\ntrials = 2\n'


def measured(plan: Plan, ms: float, verdict: Verdict | None = None) -> TrialRecord:
    first = plan.trials[0]
    changes = {"responses": Responses(service_ms_mean=ms), "verdict": verdict or Verdict(outcome="valid")}
    return record(first, 1.0).model_copy(update=changes)


def notes(plan: Plan, history: Sequence[TrialRecord]) -> tuple[str, ...]:
    return load_feasibility.notes(plan, history, 2, Abilities())


def refused(asked: Study, plan: Plan, *history: TrialRecord) -> list[str]:
    return [error.message for error in load_feasibility.refusals(asked, plan, history, Abilities())]


def test_a_service_time_of_the_same_treatment_is_said_and_the_study_goes_on() -> None:
    asked, plan = planned(TOO_MUCH)
    (note,) = notes(plan, [measured(plan, 5.0)])
    assert note == (
        "512 in flight cannot carry 200,000 op/s at 5 ms: at most 102,400 op/s "
        "(service time: measured in this store for the same treatment, 1 trial)"
    )
    assert refused(asked, plan, measured(plan, 5.0)) == []
    assert notes(plan, [measured(plan, 2.5)]) == (), "512 in flight carry 204,800 op/s at 2.5 ms"


def test_what_the_system_could_not_carry_counts_and_what_the_laboratory_spoilt_does_not() -> None:
    plan = planned(TOO_MUCH)[1]
    verdicts = {
        kind: Verdict(outcome="invalid", reasons=(Reason(kind=kind),)) for kind in (ReasonKind.RATE, ReasonKind.STEAL)
    }
    said = {kind: notes(plan, [measured(plan, 5.0, verdicts[kind])]) for kind in verdicts}
    assert "measured in this store" in said[ReasonKind.RATE][0]
    assert not any("measured in this store" in note for note in said[ReasonKind.STEAL])


def test_nothing_is_said_of_a_plan_that_is_done() -> None:
    plan = planned(TOO_MUCH.replace("trials = 2", "trials = 1"))[1]
    assert notes(plan, [measured(plan, 5.0)]) == ()


def test_another_load_of_the_same_cluster_only_suggests() -> None:
    lighter = expand(study(TOO_MUCH.replace("200000", "100")))
    asked, plan = planned(TOO_MUCH)
    history = [measured(lighter, 5.0)]
    assert refused(asked, plan, *history) == []
    (note,) = notes(plan, history)
    assert "512 in flight cannot carry 200,000 op/s at 5 ms" in note
    assert "measured in this store under another load" in note


def test_without_history_the_rule_of_thumb_suggests() -> None:
    asked, plan = planned(TOO_MUCH.replace("512", "8"))
    assert refused(asked, plan) == []
    (note,) = notes(plan, ())
    assert "8 in flight cannot carry 200,000 op/s at" in note
    assert "rule of thumb" in note
    enough = planned(TOO_MUCH.replace("200000", "1000"))[1]
    assert notes(enough, ()) == ()


def test_each_phase_is_looked_at_with_its_peak_and_its_places() -> None:
    phases = "".join(
        f'[[load.phases]]\nname = "{name}"\nduration_s = 2\nschedule = "ramp"\nfrom_per_s = 0\n'
        f"to_per_s = {rate}\nramp_s = 1\nthreads = {threads}\n"
        for name, rate, threads in (("low", 100, 1), ("high", 90_000, 16), ("wide", 90_000, 90_000))
    )
    plan = expand(read_text(HEAD.replace("operations = 1000\n", "") + phases))
    (note,) = notes(plan, ())
    assert note.startswith("phase high: 16 in flight cannot carry 90,000 op/s")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("duration_s = 3000\nwarm_up_s = 700\n", "load.warm_up_s + load.duration_s = 3700 s: longer than"),
        (
            'schedule = "constant"\ncapacity_fraction = 0.5\ncapacity_s = 4000\n',
            "load.capacity_s = 4000 s: longer than limits.trial_timeout_s = 3600",
        ),
        ('schedule = "trace"\ntrace = "nowhere.txt"\n', "trace nowhere.txt not found"),
    ],
)
def test_what_cannot_work_is_refused(rest: str, said: str) -> None:
    asked, plan = planned(rest)
    (message,) = refused(asked, plan)
    assert said in message


def test_a_trace_beside_the_study_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stamps.txt").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    assert refused(*planned('schedule = "trace"\ntrace = "stamps.txt"\n')) == []


def test_a_trace_that_was_changed_between_trials_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stamps.txt"
    path.write_text("1\n")
    asked, plan = planned(f'schedule = "trace"\ntrace = "{path}"\n')
    done = record(plan.trials[0], 1.0).model_copy(update={"versions": {f"trace {path}": sha256_of(path)}})
    assert refused(asked, plan, done) == []
    path.write_text("1\n2\n")
    (message,) = refused(asked, plan, done)
    assert "has changed: 1 sealed trials" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5\n# four\n4\n", "stamps.txt:3: '4' comes after 5.0"),
        ("5\nnow\n", "stamps.txt:2: 'now' is not a number of seconds"),
        ("5\nnan\n", "stamps.txt:2: 'nan' is not a number of seconds"),
        ("# nothing\n\n", " has no time stamps"),
    ],
)
def test_a_trace_that_the_agent_would_refuse_is_refused_before(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "stamps.txt"
    path.write_text(text)
    (message,) = refused(*planned(f'schedule = "trace"\ntrace = "{path}"\n'))
    assert said in message


def test_the_time_of_measuring_capacity_is_estimated_once_a_start() -> None:
    rest = 'schedule = "constant"\ncapacity_fraction = 0.7\n[design]\nstarts = 2\ntrials = 3\n'
    (short, short_plan), (long, long_plan) = planned("capacity_s = 5\n" + rest), planned("capacity_s = 25\n" + rest)
    more_s = estimate(long_plan, long, cores=2).seconds - estimate(short_plan, short, cores=2).seconds
    assert more_s == pytest.approx(2 * 20)


SEARCH = 'schedule = "search"\nobjective = ["saturation"]\nthreads = 64\n'
CAPACITY = 'response = "capacity_per_s"\n'
RULE = "[design]\nstarts = 20\ntrials = 1\n[design.until]\nwidth_percent = 5\n"


@pytest.mark.parametrize(("load", "named", "key"), [
    ("", f"[analysis]\n{CAPACITY}", "analysis.response"),
    ("", '[analysis]\nresponses = ["throughput_per_s", "capacity_per_s"]\n', "analysis.responses.1"),
    ("", '[analysis]\nobjective = "capacity_per_s >= 1000"\n', "analysis.objective"),
    ("", RULE + CAPACITY, "design.until.response"),
    (SEARCH, f'[analysis]\n{CAPACITY}responses = ["execution_time_ms"]\n', "analysis.responses.0"),
    (SEARCH, f'[analysis]\n{CAPACITY}responses = ["response_ms_p99"]\n', "analysis.responses.0"),
    (SEARCH, f'[analysis]\n{CAPACITY}objective = "execution_time_ms <= 10"\n', "analysis.objective"),
    (SEARCH, f'{RULE}response = "execution_time_ms"\n[analysis]\n{CAPACITY}', "design.until.response"),
])  # fmt: skip
def test_a_named_response_that_the_schedule_does_not_give_is_refused(load: str, named: str, key: str) -> None:
    asked = read_text(HEAD.replace("operations = 1000\n", load or "operations = 1000\n") + named, "some.toml")
    (error,) = load_feasibility.refusals(asked, expand(asked), (), Abilities())
    words = "over windows of all its rates" if load else "only a search finds one"
    assert (error.key, words in error.message) == (key, True)


def test_a_study_of_searches_and_other_loads_may_name_what_only_the_others_give() -> None:
    levels = '[factors]\nkind = ["closed", "searched"]\n[levels.kind.closed]\n[levels.kind.searched]\n'
    search = 'load.schedule = "search"\nload.objective = "saturation"\nload.threads = 64\n'
    asked = read_text(HEAD + levels + search + '[analysis]\nresponse = "throughput_per_s"\n', "some.toml")
    assert {trial.settings.load.schedule for trial in expand(asked).trials} == {"closed", "search"}
    assert refused(asked, expand(asked)) == []


def test_a_search_has_its_capacity_and_what_samples_give() -> None:
    named = f'[analysis]\n{CAPACITY}responses = ["cpu_percent_mean"]\nobjective = "capacity_per_s >= 1000"\n'
    asked = read_text(
        HEAD.replace("probes = []", 'probes = ["os"]').replace("operations = 1000\n", SEARCH) + named, "some.toml"
    )
    assert refused(asked, expand(asked)) == []


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (
            "threads = 2\n",
            "load.threads is 2, but each of the 3 load nodes needs at least one operation in flight",
        ),
        ("threads = 3\n", None),
        (
            'threads = 3\nschedule = "constant"\ncapacity_fraction = 0.5\ncapacity_threads = 1\n',
            "load.capacity_threads is 1, but each of the 3 load nodes needs at least one operation in flight",
        ),
    ],
    ids=["fewer", "one each", "for the capacity"],
)
def test_fewer_in_flight_than_load_nodes_are_refused(load: str, message: str | None) -> None:
    asked, plan = planned(f"{load}[factors]\nsite.load_nodes = [3]\n")
    assert refused(asked, plan) == ([message] if message else [])
