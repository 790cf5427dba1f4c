"""Section `[client]`: settings of the protocol, which complete settings hold in `load`."""

from __future__ import annotations

import pytest

from steelyard.engine_order import without_meaning
from steelyard.model.client import Client
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.wire.order import TARGETS
from tests.unit.study.paper import read_text, text

OLD = """\
read_consistency = "QUORUM"
tls = true
[factors]
load.routing = ["token", "round-robin"]
packed = ["yes", "no"]
[levels.packed.yes]
load.compression = "lz4"
[levels.packed.no]
[design.control]
load.routing = "token"
packed = "no"
"""
NEW = "[client]\n" + OLD.replace("load.", "client.")


def test_it_means_what_the_same_settings_of_the_load_mean() -> None:
    study = read_text(text(NEW), "paper.toml")
    assert study == read_text(text(OLD), "paper.toml")
    assert (study.load.read_consistency, study.load.tls) == ("QUORUM", True)
    assert study.factors["load.routing"] == ("token", "round-robin")


def test_the_compared_factor_may_be_named_so() -> None:
    compared = "[analysis]\ncompared = 'client.routing'\n"
    assert read_text(text(NEW + compared), "paper.toml").analysis.compared == "load.routing"


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ('[client]\nread_consistency = "ALL OF THEM"\n', "paper.toml:21: client.read_consistency = 'ALL OF THEM'"),
        ('[client]\nrouing = "token"\n', "paper.toml:21: client.rouing = 'token': no such key; did you mean 'routing'"),
        ("[client]\nthreads = 2\n", "paper.toml:21: client.threads = 2: no such key"),
        ("tls = true\n[client]\ntls = true\n", "paper.toml:22: client.tls = true: is given already, as load.tls"),
        ("[[client]]\ntls = true\n", "client = [{'tls': True}]: must be a table"),
        ('[factors]\n"client.routing" = ["token", "any"]\n', "paper.toml:21: factors: client.routing = 'any'"),
        (
            '[factors]\nload.routing = ["token"]\nclient.routing = ["token"]\n',
            "paper.toml:22: factors.client.routing = ['token']: load.routing is given already, under its other name",
        ),
    ],
)
def test_errors_have_their_line(rest: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest), "paper.toml")
    assert said in caught.value.message


def test_the_protocol_decides_which_settings_mean_something() -> None:
    load = Load(operations=1, compression="lz4", read_consistency="ALL", tls=True, connections_per_node=4)
    assert list(without_meaning(load, "system a", "cql")) == []
    consistency, compression, tls = without_meaning(load, "system a", "resp")
    assert consistency.message == "client.read_consistency = 'ALL': a setting of cql, but system a speaks resp"
    assert (compression.key, compression.allowed) == ("load.compression", TARGETS["resp"].client)
    assert tls.hint == "leave it out; resp has connections_per_node"
    assert [error.key for error in without_meaning(load, "system a", "http")] == [
        "load.read_consistency",
        "load.connections_per_node",
        "load.compression",
        "load.tls",
    ]
    assert list(without_meaning(Load(operations=1), "system a", "smtp")) == []
    assert set(Client.model_fields) == {name for kind in TARGETS.values() for name in kind.client}
