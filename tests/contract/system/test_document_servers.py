"""The contract of a system over real servers of documents; and what only these promise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.node.base import Node
from steelyard.system import apache, nginx
from steelyard.testing.system import SystemContract, make_system
from tests.contract.system.taken_address import start_where_it_is_taken

pytestmark = [pytest.mark.web, pytest.mark.agent]


class TestApache(SystemContract):
    module = "apache"
    network = "127.97.1"
    settings: ClassVar[dict[str, Any]] = {"processes": 2, "threads": 8, "access_log": True}


class TestThreeOfApache(SystemContract):
    module = "apache"
    network = "127.97.2"
    database_nodes = 3


class TestNginx(SystemContract):
    module = "nginx"
    network = "127.97.3"
    settings: ClassVar[dict[str, Any]] = {"workers": 2, "worker_connections": 64, "access_log": True}


class TestThreeOfNginx(SystemContract):
    module = "nginx"
    network = "127.97.4"
    database_nodes = 3


NAMES = pytest.mark.parametrize("name", ["apache", "nginx"])


@NAMES
def test_an_address_that_is_taken_is_a_fault_with_its_reason(name: str, tmp_path: Path) -> None:
    system, node = make_system(name, {}, tmp_path), Node("n1", "database", "127.97.5.1", (), tmp_path)
    with pytest.raises(SystemFault, match=r"n1: \w+ is not running: exited with code 1; .*Address already in use"):
        start_where_it_is_taken(system, node, 8080)


@NAMES
def test_a_document_stays_below_the_folder(name: str, tmp_path: Path) -> None:
    system, node = make_system(name, {}, tmp_path), Node("n1", "database", "127.97.5.2", (), tmp_path)
    for path in ("/../x", "/"):
        with pytest.raises(SystemFault, match="is not below the server's folder"):
            asyncio.run(system.create_schema([node], Schema(documents=((path, 1),))))


def test_findings_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for system, packages in (
        (apache.create(apache.Settings(), tmp_path), "apache2-bin curl"),
        (nginx.create(nginx.Settings(), tmp_path), "nginx curl"),
    ):
        (finding,) = asyncio.run(system.findings())
        assert finding.hint.endswith(f"apt-get install {packages}")
        (note,) = system.notes()
        assert note == f"curl not found on this machine: {finding.hint}"
