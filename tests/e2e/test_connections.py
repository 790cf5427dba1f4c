"""Compression, encryption and passwords against a real Cassandra: what works, and what is said where something is
wrong."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steelyard.system.cassandra import _tls
from steelyard.testing import cluster
from steelyard.testing.cluster import RunningCluster
from tests.e2e.agent_load import Ended, ask, drive, fill, order

pytestmark = [pytest.mark.agent, pytest.mark.cassandra, pytest.mark.usefixtures("brief_java")]

USER, PASSWORD = "STEELYARD_CQL_USER", "STEELYARD_CQL_PASSWORD"
OPERATIONS = 600
PORTS = {"native_port": 28_042, "storage_port": 28_700, "jmx_port": 28_199}
"""Other tests may run at the same time on the same loopback address."""


def all_succeeded(ended: Ended) -> None:
    """Every operation was answered, every read found its row."""
    assert ended.exit_code == 0, ended
    done = ended.done
    assert (done["operations"], done["errors"], done["not_found"]) == (OPERATIONS, 0, 0), done


def refused(ended: Ended, exit_code: int, message: str, hint: str) -> None:
    """It gave up with this code, these words, this advice."""
    assert ended.exit_code == exit_code, ended
    assert message in ended.failure["message"], ended.failure
    assert hint in ended.failure["hint"], ended.failure


def check(folder: Path, contact: str, ca: Path) -> None:
    """All of it against one node."""
    tls: dict[str, Any] = {"ca": str(ca)}
    asked = partial(order, [contact], stop={"operations": OPERATIONS})
    plain = asked()
    fill(folder, asked(compression="lz4"))
    for compression in (None, "lz4", "snappy"):
        for encryption in (None, tls):
            parts = {"compression": compression, "tls": encryption, "connections_per_node": 2 if compression else 1}
            ended = drive(folder, asked(**parts))
            all_succeeded(ended)
            connected = next(record for record in ended.records if record["record"] == "connected")
            assert connected["connections"] == parts["connections_per_node"]
    # The certificate is of its own authority; this machine's do not know it.
    refused(drive(folder, {**plain, "tls": {}}), 3, "no trusted authority signed", "tls.ca")
    named = {**tls, "name": "db.example.org"}
    refused(drive(folder, {**plain, "tls": named}), 3, "not for db.example.org", "tls.name")
    all_succeeded(drive(folder, {**plain, "tls": {**named, "verify": "chain"}}))
    missing = {"ca": str(folder / "nowhere.pem")}
    refused(drive(folder, {**plain, "tls": missing}), 1, f"tls.ca: read {missing['ca']}", "tls")
    rows = ask(contact, "--tls", "--tls-ca", str(ca), "--compression", "snappy", "SELECT count(*) FROM ycsb.usertable")
    assert '"count":500' in rows.stdout.replace(" ", ""), rows

    wrong = {PASSWORD: "wrong"}
    refused(drive(folder, plain, wrong), 1, "Provided username cassandra and/or password are incorrect", PASSWORD)
    told = ask(contact, "SELECT key FROM system.local", variables=wrong)
    assert told.returncode == 3
    assert "incorrect" in told.stderr


def check_without_password(folder: Path, contact: str) -> None:
    """Whoever brings none is told what is wanted."""
    refused(drive(folder, order([contact])), 3, "requires a user and a password", "environment")


def test_against_a_real_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        settings = {**PORTS, "client_tls": True, "yaml": {"authenticator": "PasswordAuthenticator"}}
        async with cluster.running(tmp_path / "state", system_settings=settings) as running:
            (contact,) = running.contacts
            await asyncio.to_thread(check, tmp_path, contact, _tls.Keys().certificate(running.nodes))
            monkeypatch.delenv(USER)
            await asyncio.to_thread(check_without_password, tmp_path, contact)
            monkeypatch.setenv(USER, "cassandra")
            assert await running.system.differing(running.nodes[0]) == {}

    monkeypatch.setenv(USER, "cassandra")
    monkeypatch.setenv(PASSWORD, "cassandra")
    asyncio.run(whole())


def test_a_node_without_encryption_says_so(real_node: RunningCluster, tmp_path: Path) -> None:
    ended = drive(tmp_path, order(real_node.contacts, tls={"verify": "none"}))
    assert ended.exit_code == 3, ended
    refused(ended, 3, "TLS", "client encryption enabled")
