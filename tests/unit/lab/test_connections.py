"""How connections are made: from the study's load to the order."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from steelyard import engine_order
from steelyard.model.load import Load
from steelyard.plugins import find
from steelyard.system.base import Endpoint
from steelyard.workload.base import Workload
from tests.unit.wire import orders
from tests.unit.workload.reference import ROOT

SCHEMA = json.loads((ROOT / "schema" / "order.schema.json").read_text())
FIELDS = {"compression", "connections_per_node", "tls"}


def workload() -> Workload:
    module = find.find("workload", "ycsb-a")
    made: Workload = module.create(module.Settings())
    return made


def made(endpoint: Endpoint, **fields: Any) -> dict[str, Any]:
    load = Load(operations=10, **fields)
    found = engine_order.measure(load, endpoint, workload().schema(), workload(), 1)
    sent = orders.sent(found)
    jsonschema.validate(sent, SCHEMA, cls=jsonschema.Draft202012Validator)
    return {key: value for key, value in (sent | sent["target"]).items() if key in FIELDS}


PLAIN = Endpoint("cql", ("127.0.0.1:9042",), "ycsb", "usertable")
OWN = Endpoint("cql", ("127.0.0.1:9042",), "ycsb", "usertable", tls_ca="/lease/clients.pem")


def test_nothing_is_said_that_is_the_default() -> None:
    assert made(PLAIN) == made(OWN) == {}


def test_the_systems_authority_is_trusted_unless_the_study_names_another() -> None:
    assert made(OWN, tls=True) == {"tls": {"ca": "/lease/clients.pem"}}
    assert made(PLAIN, tls=True) == {"tls": {}}
    given = made(OWN, tls=True, tls_ca="/own.pem", tls_verify="chain", tls_name="db")
    assert given == {"tls": {"ca": "/own.pem", "verify": "chain", "name": "db"}}


def test_compression_and_connections() -> None:
    found = made(PLAIN, compression="snappy", connections_per_node=4)
    assert found == {"compression": "snappy", "connections_per_node": 4}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tls_ca": "/x.pem"}, "tls_ca needs tls = true"),
        ({"tls_verify": "none"}, "tls_verify needs tls = true"),
        ({"tls": True, "tls_key": "/x.key"}, "tls_certificate and tls_key belong together"),
        ({"compression": "zstd"}, "'none', 'lz4' or 'snappy'"),
        ({"connections_per_node": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Load(operations=10, **fields)
