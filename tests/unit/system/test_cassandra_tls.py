"""Encryption for clients: what Cassandra is told, and what keytool is asked."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.system.cassandra import _config, _facts, _tls
from steelyard.system.cassandra._java import Java
from steelyard.system.cassandra._settings import Settings

KEYTOOL = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
case "$1" in -exportcert) echo certificate ;; *) touch "$5" ;; esac
"""


def ring(folder: Path) -> list[Node]:
    return [Node(f"n{i}", "database", f"10.0.0.{i}", (), folder / f"n{i}") for i in (1, 2)]


def java(folder: Path, script: str) -> Java:
    tool = folder / "bin" / "keytool"
    tool.parent.mkdir(parents=True)
    tool.write_text(script)
    tool.chmod(0o755)
    return Java(folder / "bin" / "java", "17.0.1")


def test_every_node_has_the_key_and_clients_need_not_encrypt(tmp_path: Path) -> None:
    nodes = ring(tmp_path)
    for node in nodes:
        options = _config.yaml_of(Settings(client_tls=True), node, nodes)["client_encryption_options"]
        assert options["keystore"] == str(node.folder / "keys" / "clients.p12")
        assert (options["enabled"], options["optional"]) == (True, True)
    assert "client_encryption_options" not in _config.yaml_of(Settings(), nodes[0], nodes)
    with pytest.raises(ValidationError, match="give only one of them"):
        Settings(client_tls=True, yaml={"client_encryption_options": {"enabled": True}})


def test_the_key_is_made_once_for_every_address(tmp_path: Path) -> None:
    nodes = ring(tmp_path)
    own = java(tmp_path / "java", KEYTOOL)
    keys = _tls.Keys()
    for node in nodes:
        asyncio.run(keys.put(own, node, nodes))
    asked = (tmp_path / "java" / "bin" / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert re.search(r"^-genkeypair .*-ext san=ip:10\.0\.0\.1,ip:10\.0\.0\.2", asked[0])
    assert keys.certificate(nodes).read_text() == "certificate\n"
    assert all((node.folder / "keys" / "clients.p12").stat().st_mode & 0o077 == 0 for node in nodes)


def test_a_java_without_keytool_and_one_that_fails_are_said(tmp_path: Path) -> None:
    bare = Java(tmp_path / "bare" / "bin" / "java", "17.0.1")
    with pytest.raises(SystemFault, match=r"keytool not found") as caught:
        asyncio.run(_tls.Keys().put(bare, ring(tmp_path)[0], ring(tmp_path)))
    assert "client_tls" in caught.value.hint
    with pytest.raises(SystemFault, match="keytool"):
        asyncio.run(_tls.Keys().put(java(tmp_path / "java", "#!/bin/sh\nexit 1\n"), ring(tmp_path)[0], ring(tmp_path)))
    assert not _tls.Keys().certificate(ring(tmp_path)).exists()


def test_a_class_asked_for_by_its_name_is_found_with_its_parameters() -> None:
    listed = [{"name": "authenticator.class_name", "value": "PasswordAuthenticator"}]
    assert _facts.compare({"authenticator": "PasswordAuthenticator"}, listed) == {}
    assert _facts.compare({"authenticator": "AllowAllAuthenticator"}, listed) == {
        "authenticator": ("AllowAllAuthenticator", "PasswordAuthenticator")
    }
