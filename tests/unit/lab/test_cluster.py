"""A cluster knows the processes of this machine that are its own, and whether its tables were filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.lab.cluster import Cluster
from steelyard.leases.lease import Lease
from steelyard.leases.records import MARKER
from steelyard.model.data_model import Schema
from steelyard.node.base import START, Node
from steelyard.system.base import Endpoint

LOADER = Node("l1", "load", "127.0.0.1", (), Path("/nodes/l1"), environment={START: "1/0/"})


@pytest.mark.parametrize(
    ("environment", "own"),
    [
        ({START: "1/0/"}, True),
        ({MARKER: "0123abcd"}, True),
        ({START: "2/0/", MARKER: "fedc9876"}, False),
        ({}, False),
    ],
)
def test_what_carries_the_mark_of_the_start_or_of_its_lease_is_its_own(
    environment: Mapping[str, str], own: bool
) -> None:
    """A virtual machine is started before the start has a name; it carries the lease's mark."""
    unused: Any = None
    lease = Lease("0123abcd", "vm", (LOADER,), datetime.now(UTC), Path("/record"))
    cluster = Cluster("s1", lease, (), unused, unused, unused, unused, unused)
    path = {"PATH": os.environ["PATH"]}
    with subprocess.Popen(
        ["sh", "-c", "echo up; read line"], env={**path, **environment}, stdin=-1, stdout=-1
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert cluster.owns(child.pid) is own
        child.kill()


@pytest.mark.parametrize(
    ("state", "made_up", "compared"), [("restore", False, True), ("truncate", False, False), ("restore", True, False)]
)
def test_values_are_compared_in_tables_that_were_filled(state: str, made_up: bool, compared: bool) -> None:
    unused: Any = None
    system: Any = SimpleNamespace(endpoint=lambda *_: Endpoint("cql", ("x:1",), compared=not made_up))
    members: Any = SimpleNamespace(in_service=())
    filled: Any = SimpleNamespace(data=SimpleNamespace(state=state))
    cluster = Cluster("s1", unused, members, unused, system, unused, filled, unused)
    assert cluster.endpoint(Schema()).compared is compared
