"""The four daemons: NameNode and Master on the first node, DataNode and Worker on the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from steelyard.node.base import Node
from steelyard.system.one_server import OneServer, data
from steelyard.system.spark_hdfs import _configuration as configuration
from steelyard.system.spark_hdfs._settings import WEB, WORKER, WORKER_WEB, Settings
from steelyard.wire.order import SPARK


class Daemon(OneServer):
    """One of them. `java` and `home` are those of the node, of which `start` is given the place."""

    name = "spark-hdfs"
    protocol = SPARK
    memory_hint = "raise node.memory_mb, or lower system.worker_memory_mb or heap_mb"
    main: ClassVar[str]

    def __init_subclass__(cls) -> None:
        file = cls.__name__.lower()
        cls.dead, cls.record_name = f"its {cls.__name__} is not running", f"{file}.json"
        cls.outputs = (f"{file}.log", f"{file}.log")

    def __init__(self, settings: Settings, places: dict[tuple[str, Path], tuple[Path, Path]]) -> None:
        super().__init__(0)
        self.settings = settings
        self._places = places
        """Node to its Java and its home of Spark."""

    async def command(self, node: Node, peers: Sequence[Node]) -> Sequence[str]:
        """Java with the daemon's class."""
        java, home = self._places[node.name, node.folder]
        words = self.words(node, peers[0])
        if words is None:
            return configuration.hdfs_argv(self.settings, node, java, home, self.main)
        return configuration.spark_argv(self.settings, node, java, home, self.main, words)

    def words(self, node: Node, master: Node) -> Sequence[str] | None:
        """Words after the class of a daemon of Spark; None for one of HDFS."""
        return None


class NameNode(Daemon):
    """HDFS's names and places of blocks."""

    main = configuration.NAMENODE


class DataNode(Daemon):
    """HDFS's blocks."""

    main = configuration.DATANODE


class Master(Daemon):
    """Spark's list of workers and jobs."""

    main = configuration.MASTER

    def words(self, node: Node, master: Node) -> Sequence[str]:
        """Its address and ports."""
        port = str(self.settings.master_port)
        return ["--host", node.address, "--port", port, "--webui-port", str(WEB)]


class Worker(Daemon):
    """Spark's starter of executors on a node."""

    main = configuration.WORKER

    def words(self, node: Node, master: Node) -> Sequence[str]:
        """Its address and ports, what it gives to executors, and its master."""
        of = self.settings
        return [
            "--host", node.address, "--port", str(WORKER), "--webui-port", str(WORKER_WEB),
            "--cores", str(of.worker_cores), "--memory", f"{of.worker_memory_mb}m",
            "--work-dir", str(data(node) / "work"), f"spark://{master.address}:{of.master_port}",
        ]  # fmt: skip
