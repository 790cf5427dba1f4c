"""`steelyard status`: progress, reasons by kind, and what stands in full only where it is asked for."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.cli.commands.status import status
from steelyard.cli.commands.verify import verify
from steelyard.events.base import Kept
from steelyard.events.kept import ActivityBegan, SessionBegan, SessionFailed, SessionInterrupted
from steelyard.leases import records as lease_records
from steelyard.model.secret import Concealer
from steelyard.model.study import Limits
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.progress import live_file, session_state
from steelyard.progress.reason_words import groups, short
from steelyard.progress.session_state import writer_of
from steelyard.progress.state import AwaitedQuiet, Live
from steelyard.reading.reading import MOST_ANALYSED
from steelyard.store import Store, StoreWriter, journal
from tests.unit.cli.screen import printed
from tests.unit.serve.stores import FAULT, VOIDED, a_plan, a_record, write


def steal(measured: float, detail: str) -> Reason:
    return Reason(kind=ReasonKind.STEAL, measured=measured, threshold=0.2, unit="of all CPU time", detail=detail)


def disturbed(measured: float) -> Verdict:
    return Verdict(outcome="invalid", reasons=(steal(measured, f"other programs kept {2 * measured:.2f} cores busy"),))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    noise = [a_record(0, disturbed(0.5 + attempt / 100), attempt=attempt) for attempt in (1, 2, 3)]
    return write(tmp_path / "s", [*noise, a_record(0, attempt=4), a_record(1, VOIDED), a_record(2, FAULT)])


def test_reasons_are_grouped_by_kind_with_range_limit_and_option(store: Path) -> None:
    shown = printed(lambda: status(store), 80)
    text = " ".join(shown.out.split())
    assert shown.code == 1
    assert "background load 3 x (51% to 53% of all CPU time, limit 20%, limits.background_cpu_fraction)" in text
    assert "lag p99 above the limit (14.4 ms, limit 10 ms, limits.lag_p99_ms)" in text
    assert "the system under test failed (n1 was killed for memory)" in text
    assert "other programs kept" not in text
    assert all(len(line) <= 80 and line == line.rstrip() for line in shown.out.splitlines())


def test_every_reason_stands_in_full_where_all_is_asked_for(store: Path) -> None:
    shown = printed(lambda: status(store, everything=True), 200)
    assert shown.out.count("other programs kept") == 3


def test_data_have_the_groups(store: Path) -> None:
    data = json.loads(printed(lambda: status(store, as_json=True)).out)
    first = data["reason_groups"][0]
    assert (first["kind"], first["count"], first["option"]) == (
        "background load",
        3,
        "limits.background_cpu_fraction",
    )
    assert (first["low"], first["high"], first["limit"]) == (0.51, 0.53, 0.2)


def test_steal_and_background_load_have_options_of_their_own() -> None:
    reasons = [steal(0.3, "other guests of the hardware, seen on n1"), steal(0.4, "other programs")]
    assert [group.option for group in groups(reasons)] == ["limits.steal_fraction", "limits.background_cpu_fraction"]


def test_kinds_without_a_number_say_what_was_said() -> None:
    fault = Reason(kind=ReasonKind.SYSTEM_FAULT, detail="n1 does not answer")
    assert short(fault) == "the system under test failed: n1 does not answer"
    assert groups([fault, fault])[0].sentence == "the system under test failed 2 x (n1 does not answer)"
    assert groups([]) == ()


def test_a_wait_for_a_quiet_machine_is_shown_as_long_as_it_lasts(store: Path) -> None:
    assert json.loads(printed(lambda: status(store, as_json=True)).out)["waiting"] == ""
    reasons = (steal(0.8, "other programs on this machine kept 1.60 of 2 cores busy, among them java 1.50"),)
    now_s = time.time()
    live = Live(t_s=now_s, quiet=AwaitedQuiet(reasons=reasons, since_s=now_s - 90, limit_s=1800.0))
    live_file.write(store, live, Concealer())
    text = " ".join(printed(lambda: status(store), 80).out.split())
    assert (
        "waiting for a quiet machine, 1 min 30 s of at most 30 min (limits.quiet_wait_s): background load: 80%" in text
    )
    assert "limits.background_cpu_fraction" in text
    live_file.write(store, live.model_copy(update={"t_s": now_s - 600}), Concealer())
    assert "waiting" not in printed(lambda: status(store), 80).out, "its process was killed"


BEGAN = SessionBegan(todo=3, total=4, command=("steelyard", "run", "a study.toml"))
KILLED = "interrupted: it ended without a word (killed, or a power cut); run the same command to resume"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([BEGAN], [KILLED, "resume: steelyard run 'a study.toml'", "`steelyard clean --dry-run` lists them"]),
        ([BEGAN, SessionInterrupted()], ["interrupted: it was stopped; run the same command to resume"]),
        (
            [BEGAN, SessionFailed(message="the machine was not quiet within 5 s", hint="see who is busy")],
            ["failed: the machine was not quiet within 5 s; see who is busy", "resume: steelyard run"],
        ),
        (
            [BEGAN.model_copy(update={"command": ("script.py",)}), SessionInterrupted()],
            ["resume: the journal does not name the study file"],
        ),
    ],
    ids=["killed", "stopped", "failed", "from-a-script"],
)
def test_how_a_study_ended_is_said_first(store: Path, events: list[Kept], words: list[str]) -> None:
    (store / "events.jsonl").write_text("".join(journal.line(event, 1_790_000_000.0) for event in events))
    text = " ".join(printed(lambda: status(store), 200).out.split())
    assert [word for word in words if word not in text] == []


def test_the_last_event_has_the_words_of_the_terminal(store: Path) -> None:
    joins = ActivityBegan(trial="a-s1-t1", kind="scale-out", nodes=("n3",), cause="scheduled: 3 nodes at 30 s")
    (store / "events.jsonl").write_text("".join(journal.line(event, 1_790_000_000.0) for event in (BEGAN, joins)))
    text = " ".join(printed(lambda: status(store), 200).out.split())
    assert "last event: scale-out of n3 begins (scheduled: 3 nodes at 30 s) at 20" in text


def test_a_study_that_is_measured_is_running_in_its_process(store: Path) -> None:
    with StoreWriter(store.parent, store.name):
        text = printed(lambda: status(store), 200).out
        assert f"in progress: process {os.getpid()}" in text
        assert writer_of(store) == os.getpid()
    assert writer_of(store) is None


def test_a_lock_that_somebody_waits_for_hides_no_writer(store: Path, tmp_path: Path) -> None:
    waiters = "1: POSIX ADVISORY WRITE 77 00:31:9 0 EOF\n1: -> POSIX ADVISORY WRITE 78 00:31:9 0 EOF\n"
    with StoreWriter(store.parent, store.name):
        locks = tmp_path / "locks"
        locks.write_text(waiters + session_state.LOCKS.read_text())
        assert writer_of(store, locks) == os.getpid()


def test_a_study_that_was_killed_a_second_ago_is_not_elsewhere(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease says whose process it was."""
    state = store.parent / "state"
    monkeypatch.setenv("STEELYARD_STATE", str(state))
    (store / "events.jsonl").write_text(journal.line(BEGAN, time.time()))
    live_file.write(store, Live(t_s=time.time()), Concealer())
    assert "runs elsewhere" in printed(lambda: status(store)).out
    now = lease_records.utc_now()
    gone = lease_records.Owner(pid=1, start_ticks=1, boot_id="another", pid_namespace=1)
    record = lease_records.Record(
        id="0123abcd", site="fake", study=Store(store).study.study.name, owner=gone, created=now, until=now
    )
    older = record.model_copy(update={"created": now - timedelta(days=1)})
    lease_records.write(lease_records.record_path(state, record.id), older)
    assert "runs elsewhere" in printed(lambda: status(store)).out, (
        "a lease of an earlier session says nothing of this one"
    )
    lease_records.write(lease_records.record_path(state, record.id), record)
    assert KILLED in printed(lambda: status(store), 200).out


def test_a_store_without_a_trial_has_no_table(store: Path) -> None:
    shutil.rmtree(store / "trials")
    text = printed(lambda: status(store), 200).out
    assert "used: valid" not in text
    assert "not valid" not in text


def test_what_status_does_not_check_is_said(store: Path) -> None:
    text = " ".join(printed(lambda: status(store), 300).out.split())
    assert f"tables, facts and logs of the trials are not checked here: `steelyard verify {store}` checks them" in text


def test_attempts_that_were_judged_by_other_limits_are_told(tmp_path: Path) -> None:
    old = a_record(0).model_copy(update={"limits": Limits(background_cpu_fraction=0.95, quiet_wait_s=1.0)})
    folder = write(tmp_path / "s", [old, a_record(1)])
    sentence = "1 attempt was judged by limits.background_cpu_fraction = 0.95; the study has 0.2"
    assert sentence in printed(lambda: status(folder), 200).out
    told = printed(lambda: verify(folder), 400).out
    assert f"limits were changed in mid-study: {sentence}" in told
    assert "quiet_wait" not in told


def test_of_many_attempts_only_the_checks_that_were_not_made_are_computed(tmp_path: Path) -> None:
    records = [a_record(place, attempt=9) for place in range(len(a_plan().trials))]
    few = write(tmp_path / "few", records)
    assert "The cluster is simulated" in printed(lambda: status(few), 200).out
    noise = [a_record(0, disturbed(0.5), attempt=attempt) for attempt in range(1000, 1000 + MOST_ANALYSED)]
    many = write(tmp_path / "many", [*records, *noise])
    shown = " ".join(printed(lambda: status(many), 200).out.split())
    assert f"More may limit it: the report has it, which reads all {len(records) + len(noise)} attempts." in shown
    assert "The cluster is simulated" not in shown
