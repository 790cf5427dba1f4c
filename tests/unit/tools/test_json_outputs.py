"""What every command prints with `--json` fits its schema, which has each of its fields; no `--json` is without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
from rich.console import Console
from tools.docs import json_outputs
from typer.testing import CliRunner

from steelyard.cli.commands import (
    audit,
    calibrate,
    check,
    clean,
    compare,
    doctor,
    gate,
    reference,
    report,
    run,
    selftest,
    status,
    verify,
)
from steelyard.cli.main import CONTENTS, command_line
from steelyard.cli.terminal import load_output
from steelyard.dropin.agent_run import LoadResult
from steelyard.judging.stopping import Decision, Narrowing, Rule
from steelyard.lab import leftovers
from steelyard.lab.conductor import Outcome
from steelyard.lab.session import SessionEnd
from steelyard.model.calibration import Calibration
from steelyard.model.look import Look
from steelyard.selftest.stall import Asked, Proof
from steelyard.wire.record import Connected
from tests.unit.cli.commands import test_load
from tests.unit.cli.screen import printed
from tests.unit.export import stores
from tests.unit.selftest import test_calibrate, test_stall
from tests.unit.study.paper import HEAD, OTHER, WORKLOAD

DECISION = Decision(
    rule=Rule(
        width_percent=3.0, confidence=0.95, response="execution_time_ms", least_starts=10, warm_up_trials=0, attempts=3
    ),
    go_on=False, why="cap", blocks=4, cap=4, needed=4, hours=0.5,
    cells=(Narrowing(treatment={"nodes": 1}, n=4, half_width_percent=1.5, state="narrow enough"),),
)  # fmt: skip
SCHEMA = Path(__file__).parents[3] / "schema" / "output"
STUDIES = Path(__file__).parents[3] / "studies"


def closed(schema: Any) -> Any:
    """The schema with the rule that an object has no further fields: so none is forgotten."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: closed(value) for key, value in schema.items()}
    if "properties" in kept and "additionalProperties" not in kept:
        kept["additionalProperties"] = False
    return kept


def problems(name: str, data: Any) -> list[str]:
    schema = closed(json.loads((SCHEMA / f"{name}.schema.json").read_text(encoding="utf-8")))
    errors = jsonschema.Draft202012Validator(schema).iter_errors(data)
    return [
        f"{error.json_path}: {error.message[:400]}" for whole in errors for error in (*(whole.context or ()), whole)
    ]


def with_json() -> Iterator[str]:
    """Every command that has the option, its words joined by hyphens."""

    def below(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        for name, one in getattr(command, "commands", {}).items():
            yield from below(one, (*words, name))
        if any("--json" in option.opts for option in command.params):
            yield "-".join(words)

    for commands in CONTENTS.values():
        for name in commands:
            whole: Any = typer.main.get_command(command_line(name))
            yield from below(whole.commands[name], (name,))


def test_no_json_is_without_a_schema() -> None:
    named = set(with_json())
    assert {"status", "selftest-stall", "reference-show"} <= named
    assert named - set(json_outputs.SCHEMAS) == set(), "declare JSON_TYPE in the command's module"
    assert set(json_outputs.SCHEMAS) - named == {"load-show"}


@pytest.mark.parametrize("name", json_outputs.SCHEMAS)
def test_a_schema_is_one_and_says_what_it_is_of(name: str) -> None:
    schema = json.loads((SCHEMA / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "steelyard " in schema["title"]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.write(tmp_path_factory.mktemp("known"))


def data_of(command: Callable[[], int]) -> Any:
    return json.loads(printed(command).out)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("audit", lambda: audit.audit("srinadhuni2018", as_json=True)),
        ("clean", lambda: clean.clean(dry_run=True, as_json=True)),
        ("doctor", lambda: doctor.doctor(as_json=True)),
        ("reference-list", lambda: reference.list_all(as_json=True)),
        ("reference-show", lambda: reference.show("all", as_json=True)),
    ],
)
def test_output_about_no_store(
    name: str, command: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path))
    assert problems(name, data_of(command)) == []


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("report", lambda store: report.report(store, as_json=True)),
        (
            "gate",
            lambda store: gate.gate(store, fixed_a=["nodes=1"], fixed_b=["nodes=3"], margin_percent=2.0, as_json=True),
        ),
        ("status", lambda store: status.status(store, as_json=True)),
        ("verify", lambda store: verify.verify(store, as_json=True)),
        ("compare", lambda store: compare.compare(str(store), fixed_a=["nodes=1"], fixed_b=["nodes=3"], as_json=True)),
        ("compare", lambda store: compare.compare(str(store), "richardson2017", as_json=True)),
    ],
    ids=["report", "gate", "status", "verify", "compare two treatments", "compare with published"],
)
def test_output_about_a_store(name: str, command: Callable[[Path], int], known: Path) -> None:
    assert problems(name, data_of(lambda: command(known))) == []


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        (f'[factors]\nnodes = [1, 3]\nworkload = ["{WORKLOAD}", "{OTHER}"]\n', 0),
        ("[design]\nstarts = 30\ntrials = 1\n[design.until]\nwidth_percent = 3\n[factors]\nnodes = [1, 3]\n", 0),
        ("thread = 4\n", 2),
    ],
    ids=["a study", "with a stopping rule", "a study that is refused"],
)
def test_output_of_check(rest: str, code: int, tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(HEAD + rest)
    checked = printed(lambda: check.check(path, trust=True, store=tmp_path, as_json=True))
    assert checked.code == code, checked.err
    assert problems("check", json.loads(checked.out)) == []


def test_output_of_check_that_is_asked_for_a_gate(tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(HEAD + "[factors]\nnodes = [1, 3]\n")
    data = data_of(
        lambda: check.check(path, trust=True, store=tmp_path, gate_percent=5.0, margin_percent=2.0, as_json=True)
    )
    assert len(data["gate"]) == 1
    assert problems("check", data) == []


@pytest.mark.parametrize("name", ["chekkilla2016", "named-levels"])
def test_output_of_check_of_a_shipped_study(name: str, tmp_path: Path) -> None:
    """One names parts that do not exist yet, the other has named levels."""
    data = data_of(lambda: check.check(STUDIES / f"{name}.toml", store=tmp_path, as_json=True))
    assert problems("check", data) == []


@pytest.mark.parametrize("decided", [True, False])
def test_output_of_run(decided: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(planned=4, valid=3, invalid=1, missing=0)
    run._say(
        SessionEnd(outcome, False, tmp_path, DECISION if decided else None, Look()),
        Console(quiet=True),
        as_json=True,
    )
    assert problems("run", json.loads(capsys.readouterr().out)) == []


def test_output_of_load() -> None:
    connected = Connected(nodes=("n1:9042",), connections=1, server="5.0.5")
    driven = [LoadResult(connected, {"measure": test_load.phase()}, False), LoadResult(None, {}, True)]
    data = json.loads(json.dumps([load_output.as_data(outcome) for outcome in driven]))
    assert problems("load", data) == []


@pytest.mark.agent
@pytest.mark.parametrize("workload", ["ycsb-a", "ycsb-e", test_load.CATALOGUE])
def test_output_of_load_that_only_shows(workload: str) -> None:
    done = CliRunner().invoke(command_line("load"), ["load", workload, "--show", "20", "--json"])
    shown = [json.loads(line) for line in done.output.splitlines()]
    assert len(shown) == 20
    assert [problem for one in shown for problem in problems("load-show", one)] == []


def test_output_of_calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measured(protocol: str, seconds: float, console: Console) -> Calibration:
        return test_calibrate.made()

    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path))
    # A calibration loads the machine for a minute.
    monkeypatch.setattr(calibrate, "_measure", measured)
    assert problems("calibrate", data_of(lambda: calibrate.calibrate(5.0, as_json=True))) == []


def test_output_of_the_stall_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    async def proved(asked: Asked, console: Console) -> Proof:
        return test_stall.proof()

    # A proof takes half a minute (e2e/test_selftest.py).
    monkeypatch.setattr(selftest, "_prove", proved)
    assert problems("selftest-stall", data_of(lambda: selftest.stall(20.0, 1000.0, 2.0, as_json=True))) == []


def test_output_of_clean_names_every_field() -> None:
    entry = leftovers.Found(site="local", lease="a1", study="s", reason="dead", nodes=1, processes=2, outcome="kept")
    data = {"leases": [entry.model_dump()], "elsewhere": [{"lease": "b2", "state_folder": "/x"}]}
    assert problems("clean", data) == []


def test_a_field_that_no_schema_has_is_found() -> None:
    data = data_of(lambda: reference.list_all(as_json=True))
    data[0]["unheard_of"] = 1
    assert problems("reference-list", data) != []
