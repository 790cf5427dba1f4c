"""Shipped systems keep their contract on nodes that site `docker` lends; of Java: `test_java_in_containers.py`."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.contract.system import test_document_servers, test_etcd, test_postgresql, test_redis, test_simulated
from tests.contract.system.in_containers import InContainers

pytestmark = [pytest.mark.docker, pytest.mark.agent, pytest.mark.usefixtures("daemon")]


class TestSimulatedOnTheMachinesNetwork(InContainers, test_simulated.TestOneNode):
    module = "simulated"
    site: ClassVar = {"network": "host", "storage": "volume"}


class TestSimulatedOnABridge(InContainers, test_simulated.TestOneNode):
    module = "simulated"
    site: ClassVar = {"network": "bridge", "storage": "overlay"}


class TestSimulatedGrowth(InContainers, test_simulated.TestGrowth):
    """Logs are in layers, which only commands read."""

    # A join that is killed must not be at its end by then.
    settings: ClassVar = {**test_simulated.TestGrowth.settings, "data_mb": 90.0}
    site: ClassVar = {"network": "bridge", "storage": "overlay"}


@pytest.mark.web
class TestApache(InContainers, test_document_servers.TestThreeOfApache):
    """The image has no Apache: this machine's is brought, with its modules and the libraries of all."""

    site: ClassVar = {"network": "bridge", "storage": "volume"}


@pytest.mark.web
class TestNginx(InContainers, test_document_servers.TestThreeOfNginx):
    site: ClassVar = {"network": "bridge", "storage": "overlay"}


@pytest.mark.redis
class TestRedis(InContainers, test_redis.TestThreeMasters):
    """The image has no programs of Redis: this machine's are brought, with their libraries."""

    site: ClassVar = {"network": "bridge", "storage": "volume"}


@pytest.mark.redis
@pytest.mark.by_hand
class TestRedisGrowth(InContainers, test_redis.Smallest):
    site: ClassVar = {"network": "bridge", "storage": "overlay"}


@pytest.mark.etcd
class TestEtcd(InContainers, test_etcd.ThreeMembers):
    """The image has no programs of etcd: this machine's are brought, with their libraries."""

    site: ClassVar = {"network": "bridge", "storage": "volume"}


@pytest.mark.postgresql
class TestPostgresql(InContainers, test_postgresql.TestThreeNodes):
    """The image has no programs of PostgreSQL: this machine's are brought, with their folders and libraries."""

    site: ClassVar = {"network": "bridge", "storage": "volume", "user_namespaces": True}


@pytest.mark.postgresql
class TestPostgresqlGrowth(InContainers, test_postgresql.Smallest):
    site: ClassVar = {"network": "bridge", "storage": "overlay", "user_namespaces": True}
