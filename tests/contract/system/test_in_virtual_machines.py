"""The simulated cluster keeps the contract of a system on nodes that site `vm` lends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.site import vm
from steelyard.site.base import Request
from tests.contract.system import test_simulated
from tests.virtual_machines import image_or_skip

pytestmark = [pytest.mark.vm, pytest.mark.agent]


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lease]:
    """One machine for all tests, because it takes long to boot."""
    image_or_skip()
    site = vm.create(vm.Settings(default_memory_mb=256), tmp_path_factory.mktemp("vm"))
    lease = asyncio.run(site.lease(Request("contract", 1, 1), lease_records.utc_now() + timedelta(hours=1)))
    try:
        yield lease
    finally:
        asyncio.run(site.release(lease))


class TestSimulated(test_simulated.TestOneNode):
    """Each test has a folder of its own on the machine; rows are written and counted from the load node."""

    module = "simulated"
    lease: ClassVar[Lease]

    @pytest.fixture(autouse=True)
    def on_the_machine(self, lent: Lease, tmp_path: Path) -> Iterator[None]:
        (node,) = lent.databases
        own = replace(node, folder=node.folder / tmp_path.name)
        type(self).lease = replace(lent, nodes=(own, *lent.loaders))
        asyncio.run(files.make_folders(own, own.folder))
        yield
        asyncio.run(run(node, [node.agent, "sweep", "--lease", lent.id], timeout_s=60.0, check=False))

    def nodes(self, tmp_path: Path) -> tuple[Node, ...]:
        return self.lease.databases

    def client(self) -> Node | None:
        return self.lease.loaders[0]
