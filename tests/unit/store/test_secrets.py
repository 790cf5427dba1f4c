"""No secret gets into a store or a report: a whole study with planted ones, and a search for their bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard import study as studies
from steelyard.cli.commands.check import check
from steelyard.cli.commands.report import report
from steelyard.events.base import Event
from steelyard.events.shown import TimeLeft, Trouble
from steelyard.lab.conductor import Conductor
from steelyard.model.errors import EngineError, StudyError
from steelyard.node import secrets
from steelyard.node.base import Node
from steelyard.plan import expand
from steelyard.store import Store, StoreWriter
from steelyard.system.cassandra import _config, _facts
from steelyard.system.cassandra._settings import Settings
from tests.unit.cli.screen import printed
from tests.unit.lab.fakes import FakeParts, FakeSystem, Script, without_waiting

SECRET = 'correct-"horse'
OTHER = "battery-staple-9"
"""Not the study's: a password that the node happens to have and to say."""

STUDY = """
probes = []
[study]
name = "guarded"
question = "does the store keep the secret?"
[system]
name = "cassandra"
jvm_options = ["-Djavax.net.ssl.trustStorePassword=env:STORE_PW"]
[system.yaml.client_encryption_options]
enabled = true
keystore_password = "file:KEYFILE"
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 10
[data]
state = "continue"
[design]
starts = 1
trials = 2
"""


class TellingSystem(FakeSystem):
    """Says its passwords wherever it can: in facts, in logs, in settings that differ, in errors."""

    async def facts(self, node: Node) -> Mapping[str, str]:
        return {"setting keystore_password": OTHER, "options": f"all=[{SECRET}] truststore_password={OTHER}"}

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        return {"memtable": (f"with {SECRET}", "without")}

    def logs(self, node: Node) -> tuple[Path, ...]:
        log = self.script.folder / "logs" / "system.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"keystore_password: {OTHER}\nstarted with {SECRET}\n{json.dumps({'x': SECRET})}\n")
        return (log.parent,)


class TellingParts(FakeParts):
    def system(self, settings: Mapping[str, Any]) -> FakeSystem:
        return TellingSystem(self.script)


class Listener:
    def __init__(self) -> None:
        self.said: list[str] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Trouble):
            self.said += [event.message, event.hint]


def written(folder: Path) -> str:
    keyfile = folder / "keyfile"
    keyfile.write_text(SECRET + "\n")
    return STUDY.replace("KEYFILE", str(keyfile))


def test_a_planted_secret_is_in_no_byte_of_store_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_PW", SECRET)
    without_waiting(monkeypatch)
    script = Script(tmp_path)
    text = written(tmp_path)
    study = studies.read_text(text)
    plan = expand(study)
    listener = Listener()

    def fail_once(count: int, order: Any) -> None:
        if count == 1:
            raise EngineError(f"cannot log in with {SECRET}", "look at truststore_password=" + OTHER)

    script.on_drive = fail_once
    with StoreWriter(
        tmp_path / "store", "guarded", secrets.concealer(trial.settings for trial in plan.trials)
    ) as writer:
        writer.intend(study, text, plan)
        parts: Any = TellingParts(script)
        foresight = lambda todo, records: TimeLeft(0, 0, 0)  # noqa: E731
        asyncio.run(Conductor(study, plan, writer, parts, listener, foresight).run())
    folder = tmp_path / "store" / "guarded"
    report(folder, tables=tmp_path / "tables")
    files = [path for place in (folder, tmp_path / "tables") for path in place.rglob("*") if path.is_file()]
    assert any(path.suffix == ".html" for path in files)
    assert any(path.name == "system.log" for path in files)
    for path in files:
        content = path.read_bytes()
        for secret in (SECRET.encode(), json.dumps(SECRET)[1:-1].encode(), OTHER.encode(), b"correct-&#34;horse"):
            assert secret not in content, path
    assert listener.said, "the voided trial was told of"
    assert SECRET not in " ".join(listener.said)
    record = Store(folder).trials()[0]
    kept = record.settings.root["system"]["yaml"]["client_encryption_options"]["keystore_password"]
    assert kept.startswith("file:"), "the reference stays, so that the study can be repeated"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("[system.yaml]\nclient_encryption_options.keystore_password = 'hunter22'", "keystore_password"),
        ("jvm_options = ['-Djavax.net.ssl.keyStorePassword=hunter22']", "keyStorePassword"),
        ("password = 'hunter22'", "password"),
    ],
)
def test_a_literal_is_refused_and_not_repeated(line: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "[study]\nname='x'\nquestion='?'\n[workload]\nname='ycsb-c'\n[load]\noperations=10\n"
        f"[system]\nname='cassandra'\n{line}\n"
    )
    found = printed(lambda: check(path, store=tmp_path / "store"))
    assert found.code == 2
    assert key in found.err
    assert "env:NAME" in found.err
    assert "hunter22" not in found.err + found.out


def test_a_literal_level_of_a_factor_is_refused(tmp_path: Path) -> None:
    text = (
        written(tmp_path) + '[factors]\n"system.yaml.server_encryption_options.keystore_password" = ["aaaa", "bbbb"]\n'
    )
    with pytest.raises(StudyError) as caught:
        studies.read_text(text)
    assert "must not be in a study" in str(caught.value)
    assert "aaaa" not in str(caught.value)


def test_a_reference_that_leads_nowhere_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORE_PW", raising=False)
    path = tmp_path / "study.toml"
    path.write_text(written(tmp_path))
    found = printed(lambda: check(path, store=tmp_path))
    assert found.code == 2
    assert "STORE_PW is not set" in found.err
    assert "lies in the store" in found.err, "the file of the secret lies in what was named as the store"


def test_a_secret_is_looked_up_when_the_node_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_PW", SECRET)
    study = studies.read_text(written(tmp_path))
    settings = Settings.model_validate({key: value for key, value in study.system.settings.items() if key != "name"})
    node = Node("n1", "database", "127.0.0.9", (), tmp_path / "node")
    asyncio.run(_config.write(settings, node, [node]))
    config = tmp_path / "node" / "conf" / "cassandra.yaml"
    assert json.loads(config.read_text())["client_encryption_options"]["keystore_password"] == SECRET
    assert config.stat().st_mode & 0o077 == 0, "nobody else may read it"
    asked = _config.yaml_of(settings, node, [node])
    rows = [{"name": "client_encryption_options.keystore_password", "value": "something else"}]
    assert "client_encryption_options.keystore_password" not in _facts.compare(asked, rows)


@pytest.mark.parametrize(("found", "what"), [("abc", "3 characters"), (None, "is not set")])
def test_what_cannot_be_a_secret_is_refused(found: str | None, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        secrets.look_up("env:PW", {} if found is None else {"PW": found})


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        secrets.look_up(f"file:{tmp_path / 'none'}")


def test_credentials_go_only_to_loads_over_their_protocol() -> None:
    cql = {secrets.CQL_USER: "ann", secrets.CQL_PASSWORD: SECRET}
    postgresql = {secrets.POSTGRESQL_PASSWORD: OTHER}
    variables = {**cql, **postgresql, "PATH": "/bin"}
    assert secrets.load_credentials("cql", variables) == cql
    assert secrets.load_credentials("postgresql", variables) == postgresql
    assert secrets.load_credentials("resp", variables) == secrets.load_credentials("http", variables) == {}
    assert secrets.load_credentials("cql", postgresql) == secrets.load_credentials("postgresql", cql) == {}
