"""Settings of the system `spark-hdfs`, and the properties of Hadoop and Spark that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from steelyard.model.value import Value, later
from steelyard.node.base import Node, is_loopback
from steelyard.system.one_server import data

BASE_MB: Final = 72
"""Memory of a daemon beyond its heap, MiB: 164 to 206 in all were read with a heap of 128."""
LEAST_EXECUTOR_MB: Final = 450
"""Spark refuses executors and drivers with less."""
WEB, WORKER, WORKER_WEB, NAMENODE_WEB = 8080, 7078, 8081, 9870
DATANODE: Final = {"dfs.datanode.http.address": 9864, "dfs.datanode.address": 9866, "dfs.datanode.ipc.address": 9867}
"""Property of a DataNode to its port."""
RESERVED_SPARK: Final = (
    "spark.master", "spark.submit.", "spark.driver.host", "spark.driver.bindAddress", "spark.driver.memory",
    "spark.executor.memory", "spark.local.dir", "spark.eventLog.", "spark.jars", "spark.hadoop.fs.defaultFS",
    "spark.hadoop.dfs.replication", "spark.hadoop.dfs.blocksize", "spark.hadoop.dfs.client.use.datanode.hostname",
)  # fmt: skip
Property = str | int | float | bool


class Settings(Value):
    """Settings of the system `spark-hdfs`. All are hard to change: another value needs a new cluster."""

    version: str = Field(default="3.5.9", pattern=r"^3\.5\.\d+$")
    """Release of Spark on Maven."""
    hadoop_version: str = Field(default="3.4.2", pattern=r"^3\.[34]\.\d+$")
    """Release of HDFS on Maven."""
    heap_mb: int = Field(default=128, ge=64, le=65_536)
    """Java heap of each of a node's two daemons, MiB; executors have their own."""
    worker_memory_mb: int = Field(default=640, ge=LEAST_EXECUTOR_MB, le=1 << 24)
    """Memory that a worker gives to executors, MiB."""
    worker_cores: int = Field(default=1, ge=1, le=1024)
    """Tasks that a worker runs at once."""
    executor_memory_mb: int = Field(default=512, ge=LEAST_EXECUTOR_MB, le=1 << 24)
    """Heap of an executor, MiB; at most `worker_memory_mb`."""
    submit_memory_mb: int = Field(default=512, ge=LEAST_EXECUTOR_MB, le=1 << 24)
    """Heap of the program that submits a job and follows it, Spark's driver, on the load node, MiB."""
    replication_factor: int = Field(default=1, ge=1, le=512)
    """Copies of each block of a file, at most one on each DataNode."""
    block_size_mb: int = Field(default=32, ge=1, le=4096)
    """Size of a block, MiB: a job reads each in a task of its own. HDFS's own is 128."""
    master_port: int = Field(default=7077, ge=1024, le=65_535)
    """TCP port of the master, to which jobs are submitted."""
    namenode_port: int = Field(default=9000, ge=1024, le=65_535)
    """TCP port of the NameNode for clients."""
    join_timeout_s: float = later(1800.0, gt=0, le=86_400)
    """Time limit for a node to join or to leave."""
    hdfs: dict[Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9.-]*$")], Property] = Field(default_factory=dict)
    """Any further property of `hdfs-site.xml` (`"dfs.namenode.handler.count" = 20`)."""
    spark: dict[Annotated[str, Field(pattern=r"^spark\.[A-Za-z0-9.-]+$")], Property] = Field(default_factory=dict)
    """Any further property of a job (`"spark.shuffle.compress" = false`)."""

    @field_validator("hdfs")
    @classmethod
    def _free_in_hdfs(cls, given: dict[str, Property]) -> dict[str, Property]:
        for name in given:
            if name in hdfs_properties(cls(), _ANY, _ANY):
                instead = {"dfs.replication": "replication_factor", "dfs.blocksize": "block_size_mb"}.get(name)
                what = f"use the setting {instead}" if instead else "set by the laboratory"
                raise ValueError(f"property {name!r} is reserved: {what}")
        return given

    @field_validator("spark")
    @classmethod
    def _free_in_spark(cls, given: dict[str, Property]) -> dict[str, Property]:
        for name in given:
            if name.startswith(RESERVED_SPARK):
                instead = {
                    "spark.executor.memory": "executor_memory_mb",
                    "spark.driver.memory": "submit_memory_mb",
                    "spark.hadoop.dfs.replication": "replication_factor",
                    "spark.hadoop.dfs.blocksize": "block_size_mb",
                }.get(name)
                what = f"use the setting {instead}" if instead else "set by the laboratory"
                raise ValueError(f"property {name!r} is reserved: {what}")
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.executor_memory_mb > self.worker_memory_mb:
            raise ValueError(
                f"executor_memory_mb {self.executor_memory_mb} is more than worker_memory_mb {self.worker_memory_mb}: "
                "no worker could run an executor, and jobs would wait for ever"
            )
        return self

    @property
    def memory_mb(self) -> int:
        """Memory that one node needs at least, MiB: DataNode, Worker, and what that gives to executors."""
        return 2 * (self.heap_mb + BASE_MB) + self.worker_memory_mb


def hdfs_properties(settings: Settings, node: Node, master: Node) -> Mapping[str, str]:
    """Properties of HDFS on a node, whose NameNode is on `master`. Pure."""
    further = {name: word(value) for name, value in settings.hdfs.items()}
    own = {name: f"{node.address}:{port + _apart(node)}" for name, port in DATANODE.items()}
    return {
        **further,
        **own,
        "fs.defaultFS": root_of(settings, master),
        "hadoop.tmp.dir": str(data(node) / "hadoop"),
        "dfs.namenode.name.dir": f"file://{data(node) / 'name'}",
        "dfs.datanode.data.dir": f"file://{data(node) / 'blocks'}",
        "dfs.namenode.http-address": f"{master.address}:{NAMENODE_WEB}",
        "dfs.datanode.hostname": node.address,
        # On loopback addresses every connection seems to come from 127.0.0.1.
        "dfs.client.use.datanode.hostname": "true",
        "dfs.datanode.use.datanode.hostname": "true",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.replication": str(settings.replication_factor),
        "dfs.blocksize": str(settings.block_size_mb << 20),
        "dfs.permissions.enabled": "false",
        "dfs.heartbeat.interval": "1",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.decommission.interval": "1",
        "dfs.hosts.exclude": str(excluded(node)),
    }


def job_properties(settings: Settings, node: Node, master: Node) -> Mapping[str, str]:
    """Properties of a job whose driver runs on a load node. Pure."""
    of_hdfs = hdfs_properties(settings, node, master)
    shared = ("fs.defaultFS", "dfs.replication", "dfs.blocksize", "dfs.client.use.datanode.hostname")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Executors of a node that leaves end their tasks, and then themselves.
        "spark.decommission.enabled": "true",
        **{name: word(value) for name, value in settings.spark.items()},
        **{f"spark.hadoop.{name}": of_hdfs[name] for name in shared},
        "spark.master": f"spark://{master.address}:{settings.master_port}",
        "spark.executor.memory": f"{settings.executor_memory_mb}m",
        "spark.driver.host": node.address,
        "spark.driver.bindAddress": node.address,
    }


def root_of(settings: Settings, master: Node) -> str:
    """URL of the file system's root."""
    return f"hdfs://{master.address}:{settings.namenode_port}"


def conf(node: Node) -> Path:
    """Folder of a node's configuration."""
    return node.folder / "conf"


def excluded(node: Node) -> Path:
    """List of the DataNodes that the NameNode has no blocks on, each as `transfer_of`."""
    return conf(node) / "excluded"


def transfer_of(node: Node) -> str:
    """`address:port` of a node's DataNode, as the NameNode sees them."""
    address = "127.0.0.1" if is_loopback(node.address) else node.address
    return f"{address}:{DATANODE['dfs.datanode.address'] + _apart(node)}"


def web_of_hdfs(node: Node, master: Node) -> str:
    """`address:port` of the pages of a node's NameNode or DataNode."""
    if node.name == master.name:
        return f"{node.address}:{NAMENODE_WEB}"
    return f"{node.address}:{DATANODE['dfs.datanode.http.address'] + _apart(node)}"


def web_of_spark(node: Node, master: Node) -> str:
    """`address:port` of the pages of a node's Master or Worker."""
    return f"{node.address}:{WEB if node.name == master.name else WORKER_WEB}"


def word(value: Property) -> str:
    """A value as a property file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _apart(node: Node) -> int:
    """Number that is added to a DataNode's ports: the NameNode sees all on loopback addresses as 127.0.0.1, and knows
    them by their ports."""
    return int(ip_address(node.address)) % 256 * 10 if is_loopback(node.address) else 0


_ANY: Final = Node("", "database", "0.0.0.0", (), Path())
