"""Settings of Spark and HDFS, their files and command lines, and what the first node says of the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.model.data_model import Schema
from steelyard.model.load import Load
from steelyard.node.base import Node
from steelyard.system.spark_hdfs import Settings, _configuration, _state, create
from steelyard.system.spark_hdfs._settings import (
    hdfs_properties,
    job_properties,
    transfer_of,
    web_of_hdfs,
    web_of_spark,
)

LOAD = Load(operations=1)


def nodes(network: str = "10.0.0", count: int = 3) -> list[Node]:
    return [
        Node(f"n{index}", "database", f"{network}.{index}", (), Path(f"/n{index}")) for index in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor_memory_mb": 1024}, "executor_memory_mb 1024 is more than worker_memory_mb 640"),
        ({"executor_memory_mb": 384}, "greater than or equal to 450"),
        ({"hdfs": {"dfs.replication": 2}}, "'dfs.replication' is reserved: use the setting replication_factor"),
        ({"hdfs": {"fs.defaultFS": "x"}}, "'fs.defaultFS' is reserved: set by the laboratory"),
        ({"spark": {"spark.executor.memory": "1g"}}, "use the setting executor_memory_mb"),
        ({"spark": {"spark.eventLog.dir": "x"}}, "'spark.eventLog.dir' is reserved: set by the laboratory"),
        ({"spark": {"other": 1}}, "String should match pattern"),
        ({"version": "4.0.0"}, "String should match pattern"),
    ],
)
def test_settings_that_cannot_work_are_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(**given)
    assert message in str(refused.value)


def test_sizes_that_cannot_work_name_what_is_allowed(tmp_path: Path) -> None:
    system = create(Settings(replication_factor=3), tmp_path)
    assert list(system.problems(4, LOAD)) == []
    (error,) = system.problems(3, LOAD)
    assert (error.key, error.read, error.hint) == (
        "system.replication_factor", 3, "allowed: 1 to 2, or more nodes",
    )  # fmt: skip
    (error,) = system.problems(1, LOAD)
    assert (error.key, error.hint) == ("site.nodes", "allowed: 2 or more nodes")
    assert system.copies(3) == 2


def test_the_memory_of_a_node_is_that_of_its_daemons_and_executors() -> None:
    assert Settings().memory_mb == 640 + 2 * (128 + 72)
    assert Settings().memory_mb > 1024, "a node of 1 GiB is too small"


def test_datanodes_on_loopback_addresses_differ_by_their_ports() -> None:
    first, second, third = nodes("127.0.3")
    ports = {
        hdfs_properties(Settings(), node, first)[name].rpartition(":")[2]
        for node in (second, third)
        for name in ("dfs.datanode.address", "dfs.datanode.http.address", "dfs.datanode.ipc.address")
    }
    assert len(ports) == 6
    own = hdfs_properties(Settings(), third, first)
    assert web_of_hdfs(third, first) == own["dfs.datanode.http.address"] == "127.0.3.3:9894"
    assert web_of_hdfs(first, first) == own["dfs.namenode.http-address"] == "127.0.3.1:9870"
    assert [web_of_spark(node, first) for node in (first, second)] == ["127.0.3.1:8080", "127.0.3.2:8081"]
    assert hdfs_properties(Settings(), nodes()[1], nodes()[0])["dfs.datanode.address"] == "10.0.0.2:9866"
    assert [transfer_of(node) for node in (third, nodes()[1])] == ["127.0.0.1:9896", "10.0.0.2:9866"]


def test_a_property_is_escaped_and_a_users_own_is_among_them() -> None:
    first = nodes()[0]
    settings = Settings(hdfs={"dfs.some": "<&>", "dfs.other": True}, spark={"spark.shuffle.compress": False})
    text = _configuration.of_node(settings, first, first, "host")["hdfs-site.xml"]
    assert "<name>dfs.some</name><value>&lt;&amp;&gt;</value>" in text
    assert "<name>dfs.other</name><value>true</value>" in text
    assert "fs.defaultFS" not in text
    assert job_properties(settings, first, first)["spark.shuffle.compress"] == "false"


def test_the_scripts_of_a_load_node_quote_what_they_are_given() -> None:
    first, *_ = nodes()
    loader = Node("l1", "load", "10.0.0.9", (), Path("/with space/l1"))
    settings = Settings(spark={"spark.app.name": "it's $HOME"})
    texts = _configuration.of_client(settings, loader, first, Path("/java"), Path("/home"), "curl")
    assert """'spark.app.name=it'"'"'s $HOME'""" in texts["submit"]
    assert "'/with space/l1/conf:/home/jars/*'" in texts["submit"]
    assert texts["submit"].endswith(' "$@"\n')
    assert texts["remove"].rstrip().endswith('webhdfs/v1/${1#hdfs://*/}?op=DELETE&recursive=true"')


def _page(
    living: list[str], workers: dict[str, str], safe: str = "", applications: int = 0, state: str = "In Service"
) -> str:
    datanodes = {f"{address}:9866": {"adminState": state, "lastContact": 2} for address in living}
    beans = [
        {"LiveNodes": json.dumps(datanodes), "Safemode": safe},
        {"UnderReplicatedBlocks": 2, "PendingReplicationBlocks": 1},
    ]
    spark = {
        "workers": [
            {"host": host, "state": state, "cores": 1, "memory": 640} for host, state in workers.items()
        ],
        "activeapps": [{}] * applications,
    }  # fmt: skip
    return "".join(f"{json.dumps(answer, indent=1)}\n" for answer in (*({"beans": [bean]} for bean in beans), spark))


def test_what_is_missing_is_named() -> None:
    others = {"n2": "10.0.0.2", "n3": "10.0.0.3"}
    seen = _state.seen(_page(["10.0.0.2", "10.0.0.3"], {"10.0.0.2": "DEAD", "10.0.0.3": "ALIVE"}))
    assert seen.missing(others) == "Worker of n2"
    assert [seen.serves(address) for address in others.values()] == [False, True]
    assert (seen.blocks_to_copy, seen.applications) == (3, 0)
    assert _state.seen(_page([], {})).missing(others) == "DataNode of n2, n3 and Worker of n2, n3"
    safe = _state.seen(_page(["10.0.0.2"], {"10.0.0.2": "ALIVE"}, "Safe mode is ON", 1))
    assert safe.missing({"n2": "10.0.0.2"}) == "the NameNode is in safe mode"
    assert not safe.serves("10.0.0.2")
    assert safe.applications == 1


def test_a_node_that_leaves_is_in_service_no_more() -> None:
    leaving, left = (
        _state.seen(_page(["10.0.0.2"], {"10.0.0.2": "DECOMMISSIONED"}, state=state))
        for state in ("Decommission In Progress", "Decommissioned")
    )
    assert not leaving.serves("10.0.0.2")
    assert leaving.datanodes == leaving.workers == leaving.decommissioned == frozenset()
    assert left.decommissioned == {"10.0.0.2"}
    assert left.silent_s == {"10.0.0.2": 3.0}
    assert _state.executors('{"executors": [{}, {}]}') == 2


def test_a_namenode_that_has_no_beans_yet_is_not_ready() -> None:
    with pytest.raises(LookupError):
        _state.seen('{"beans": []} {"beans": []} {"workers": [], "activeapps": []}')
    with pytest.raises(ValueError, match="Expecting value"):
        _state.answers("Spark is starting up. Please wait a while until it's ready.")


def test_what_a_worker_gives_is_read_from_its_master() -> None:
    page = json.dumps({"workers": [{"host": "10.0.0.2", "state": "ALIVE", "cores": 2, "memory": 640}]})
    assert _state.worker_of(page, "10.0.0.2") == ("2", "640")
    assert _state.worker_of(page, "10.0.0.3") == ("", "")


def test_the_paths_of_jobs_do_not_depend_on_what_was_prepared(tmp_path: Path) -> None:
    endpoint = create(Settings(), tmp_path).endpoint(nodes(), Schema())
    assert endpoint.files == "hdfs://10.0.0.1:9000"
    assert endpoint.contacts == ("10.0.0.1:7077", "10.0.0.2:7078", "10.0.0.3:7078")
    assert Path(endpoint.program).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []
