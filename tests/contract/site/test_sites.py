"""Every site that is shipped keeps the contract of a site."""

from __future__ import annotations

from typing import ClassVar

import pytest

from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.site.kernel import cgroup, network
from steelyard.testing.site import SiteContract


class TestFake(SiteContract):
    module = "fake"


class LocalContract(SiteContract):
    module = "local"

    def remains(self, lease: Lease) -> list[str]:
        groups = cgroup.present(cgroup.detect(), lease.id).get(lease.id, [])
        networks = network.present(lease.id).get(lease.id, [])
        entered = [lease.id] if lease.id in lease_register.known() else []
        return [*super().remains(lease), *map(str, groups), *networks, *entered]


class TestLocalLoopback(LocalContract):
    settings: ClassVar = {"mode": "loopback"}
    leases_at_once = False


@pytest.mark.root
@pytest.mark.agent
class TestLocalNamespaces(LocalContract):
    settings: ClassVar = {"mode": "namespaces"}
