"""What `check` refuses, `run` refuses in the same words and at the same line, for every kind of problem."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.commands.check import check
from steelyard.cli.commands.run import run
from steelyard.lab.session import begin
from steelyard.model.errors import StudyError
from steelyard.plan import Machine, preflight
from steelyard.plan.check import weigh
from steelyard.plugins.find import Plugins, any_file
from steelyard.store import StoreWriter
from tests.unit.cli.screen import printed
from tests.unit.judging.test_attempts import record
from tests.unit.study.paper import HEAD, SYSTEM, WORKLOAD

LARGE = Machine(cores=2, memory_mb=64_000, disk_free_bytes=10**12)
FACTORS = "[factors]\nnodes = [1, 3]\nload.threads = [1, 2]\n"
CONFOUNDED = (
    '[design]\nkind = "listed"\ntreatments = [{ nodes = 1, load.threads = 1 }, { nodes = 3, load.threads = 2 }]\n'
)

Refusal = tuple[str, str, int]
"""Message, hint, line."""

KINDS: dict[str, tuple[str, Machine, str]] = {
    "reading": ("thread = 4\n", LARGE, r"paper\.toml:20: load\.thread = 4: no such key"),
    "confounded": (CONFOUNDED, LARGE, r"paper\.toml:22: factors 'nodes' and 'load.threads' always move together"),
    "system": (
        "[factors]\nnodes = [1, 3]\nsystem.replication_factor = [1, 3]\n",
        LARGE,
        r"paper\.toml:22: system\.replication_factor = 3 with 1 node: more copies than nodes",
    ),
    "site": ("[factors]\nnodes = [1, 12]\n", LARGE, r"paper\.toml:21: site .* cannot lend 12 nodes: only 9 addresses"),
    "memory of a node": (
        "[node]\nmemory_mb = 32\n",
        LARGE,
        r"paper\.toml:21: site .* cannot lend 1 node: a node needs 512 MB, but memory_mb = 32 is its limit",
    ),
    "memory": (
        FACTORS,
        LARGE.model_copy(update={"memory_mb": 2000}),
        r"paper\.toml:21: 3 nodes need 2,048 MiB of memory",
    ),
    "disk": (
        FACTORS,
        LARGE.model_copy(update={"disk_free_bytes": 10**6}),
        r"paper\.toml:16: about .* [KMG]iB of disk are",
    ),
    "hours": (
        f"[design]\ntime_budget_h = 0.001\n{FACTORS}",
        LARGE,
        r"paper\.toml:21: design\.time_budget_h = 0\.001: about .* hours are needed",
    ),
    "too long": ("duration_s = 4000\n", LARGE, r"paper\.toml:20: load\.duration_s = 4000 s: longer than limits"),
    "trace": (
        'schedule = "trace"\ntrace = "nowhere.txt"\n',
        LARGE,
        r"paper\.toml:21: trace nowhere\.txt not found",
    ),
    "engine": ('engine = "cassandra-stress"\n', LARGE, r"paper\.toml:20: engine cassandra-stress cannot run"),
    "protocol": (
        "# another protocol\n",
        LARGE,
        r"paper\.toml:15: workload .* uses cql, but system .* speaks http",
    ),
    "setting of another protocol": (
        '# speaks RESP\n[factors]\nclient.compression = ["none", "lz4"]\n',
        LARGE,
        r"paper\.toml:22: client\.compression = 'lz4': a setting of cql, but system .* speaks resp",
    ),
    "secret": (
        '[system.yaml]\npassword = "env:STEELYARD_NOT_THERE"\n',
        LARGE,
        r"paper\.toml:21: system\.yaml\.password: the environment variable STEELYARD_NOT_THERE is not set",
    ),
}


@pytest.fixture(autouse=True)
def large(this_machine: list[Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large machine, unless the test says otherwise."""
    this_machine.append(LARGE)
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))


def checked(path: Path, store: Path) -> list[Refusal]:
    checked = printed(lambda: check(path, trust=True, store=store, scale=1.0, as_json=True))
    errors = json.loads(checked.out)["errors"]
    assert checked.code == (2 if errors else 0)
    return [(error["message"], error["hint"], error["line"]) for error in errors]


def ran(path: Path, store: Path) -> list[Refusal]:
    with pytest.raises(StudyError) as caught:
        printed(lambda: run(path, trust=True, store=store, scale=1.0, plain=True, as_json=False))
    for error in caught.value.errors:
        assert error.message in caught.value.message, "none of several is passed over"
    return [(error.message, error.hint, error.line) for error in caught.value.errors]


def written(folder: Path, rest: str) -> Path:
    path = folder / "paper.toml"
    # The workload on paper is none that an engine could be asked about.
    head = HEAD.replace(WORKLOAD, "ycsb-a") if "engine" in rest else HEAD
    spoken = "http" if "another protocol" in rest else "resp" if "speaks RESP" in rest else ""
    if spoken:
        source = Path(SYSTEM).read_text(encoding="utf-8")
        (folder / "system.py").write_text(source.replace('protocol: str = "cql"', f'protocol: str = "{spoken}"'))
        head = head.replace(SYSTEM, str(folder / "system.py"))
    path.write_text(head + rest)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_check_and_run_refuse_the_same(kind: str, tmp_path: Path, this_machine: list[Machine]) -> None:
    rest, machine, said = KINDS[kind]
    this_machine.append(machine)
    path = written(tmp_path, rest)
    refused = checked(path, tmp_path / "store")
    assert any(re.search(said, message) for message, _, _ in refused), refused
    assert all(line > 0 for _, _, line in refused), "each has its line"
    assert ran(path, tmp_path / "store") == refused


def test_several_are_refused_together(tmp_path: Path, this_machine: list[Machine]) -> None:
    this_machine.append(LARGE.model_copy(update={"disk_free_bytes": 1}))
    path = written(tmp_path, 'schedule = "trace"\ntrace = "nowhere.txt"\n[factors]\nnodes = [1, 12]\n')
    refused = checked(path, tmp_path / "store")
    assert len(refused) == 3
    assert ran(path, tmp_path / "store") == refused


def test_a_study_that_would_orphan_the_trials_of_its_store_is_refused_by_both(
    tmp_path: Path, this_machine: list[Machine]
) -> None:
    """`check` once said that all was well, and `run` refused."""
    path, store = written(tmp_path, FACTORS), tmp_path / "store"
    study, plan = preflight.read_and_expand(path, Plugins(tmp_path))
    with StoreWriter(store, "paper") as writer:
        writer.intend(study, path.read_text(), plan)
        draft = writer.draft(plan.trials[0].id, 1)
        first = record(plan.trials[0])
        draft.intend(first)
        draft.seal(first)
    assert checked(path, store) == []
    path.write_text(
        path.read_text().replace("operations = 1000", "operations = 999") + "[limits]\nbackground_cpu_fraction = 0.5\n"
    )
    ((message, hint, line),) = checked(path, store)
    assert "paper.toml:5: the changed study cannot continue this store: 1 sealed trials" in message
    assert '"operations": 999' in hint
    assert "background_cpu_fraction" not in hint, "a limit does not decide which trials there are"
    assert line == 5
    assert ran(path, store) == [(message, hint, line)]


@pytest.mark.agent
def test_what_the_agent_refuses_is_refused_by_both(tmp_path: Path, this_machine: list[Machine]) -> None:
    (tmp_path / "w.toml").write_text(
        'name = "w"\n[tables.t]\nprimary_key = "id"\ncolumns.id = "int"\n'
        'columns.small = { type = "tinyint", number = "uniform(0..1000)" }\n[statements]\n'
        'put = "INSERT INTO t (id, small) VALUES (?, ?)"\n[[operations]]\nname = "put"\nkeys = "new"\n'
        'statement = "put"\n'
    )
    path = tmp_path / "paper.toml"
    path.write_text(HEAD.replace(WORKLOAD, "w.toml").replace("records = 5000\n", ""))
    refused = checked(path, tmp_path / "store")
    assert any(
        re.search(r"paper\.toml:15: workload w\.toml:\d+: .*allowed: -128 to 127", text) for text, _, _ in refused
    ), refused
    assert ran(path, tmp_path / "store") == refused


def test_what_is_right_is_not_refused(tmp_path: Path, this_machine: list[Machine]) -> None:
    assert checked(written(tmp_path, FACTORS), tmp_path / "store") == []
    preflight.refuse(())


def test_who_reads_the_error_alone_has_every_hint() -> None:
    errors: list[Any] = [StudyError("a.toml:3: one", "do this"), StudyError("a.toml:5: two")]
    with pytest.raises(StudyError) as caught:
        preflight.refuse(errors)
    assert caught.value.message == "a.toml:3: one\n  do this\na.toml:5: two"
    assert caught.value.hint == "2 errors"


def test_a_session_notes_what_check_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assumptions about plug-ins, sizes of the design, the stopping rule: all that was `check`'s alone."""
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    rule = "[design]\nstarts = 12\n[design.until]\nwidth_percent = 5\n"
    path, store, lines = written(tmp_path, f"{rule}{FACTORS}"), tmp_path / "store", []
    with begin(path, store, trust=any_file, say=lines.append):
        said = [line.removeprefix("note: ") for line in lines]
    checked = weigh(path, store, 1.0, any_file)
    assert said == list(checked.warnings)
    assert any("cluster sizes" in note for note in said), said


@pytest.mark.parametrize(
    ("wait_s", "what"), [(-1, "must be at least 0"), ("long", "must be a number"), (math.inf, "must be")]
)
def test_a_session_waits_as_long_as_a_study_may(tmp_path: Path, wait_s: Any, what: str) -> None:
    with (
        pytest.raises(StudyError, match=f"limits.quiet_wait_s = .*: {what}"),
        begin(written(tmp_path, FACTORS), tmp_path / "store", quiet_wait_s=wait_s),
    ):
        pass
    assert not (tmp_path / "store").exists()
