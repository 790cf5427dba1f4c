"""A real node is told a password and says it wherever it can; store and report hold it in no byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.cassandra, pytest.mark.usefixtures("brief_java")]

SECRET = 'pla"nted-3141-592'
"""Cassandra lists passwords among its settings, and the virtual machine logs its options."""
STUDY = """
[study]
name = "told"
question = "does the store keep the secret?"
[system]
name = "cassandra"
jvm_options = ["-Dplanted.password=env:PLANTED"]
[system.yaml.client_encryption_options]
enabled = false
keystore_password = "env:PLANTED"
truststore_password = "file:KEYFILE"
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 100
[data]
state = "continue"
[server_warm_up]
mode = "off"
[design]
starts = 1
trials = 1
[limits]
steal_fraction = 1
background_cpu_fraction = 1
"""


def test_a_real_node_s_passwords_do_not_reach_the_store(
    laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyfile = tmp_path / "keyfile"
    keyfile.write_text(SECRET + "\n")
    study = tmp_path / "told.toml"
    study.write_text(STUDY.replace("KEYFILE", str(keyfile)))
    monkeypatch.delenv("PLANTED", raising=False)
    done = laboratory.run(study)
    assert done.returncode == 2
    assert "PLANTED is not set" in done.stderr
    monkeypatch.setenv("PLANTED", SECRET)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    laboratory.tables("told")
    (record,) = Store(laboratory.store / "told").trials()
    facts = Store(laboratory.store / "told").facts(record)["system:n1"]
    assert facts["setting client_encryption_options.keystore_password"] == "(redacted)"
    assert record.verdict.outcome == "valid", "a secret that is in force is no setting that differs"
    written = json.dumps(SECRET)[1:-1].encode()
    searched = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert {"study.toml", "trial.json", "system.log", "cassandra.yaml"} <= {path.name for path in searched}
    for path in [*searched, tmp_path / "report.html"]:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        assert written not in content, path
    assert SECRET not in done.stderr
