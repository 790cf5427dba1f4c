"""Files and command lines of the daemons and of the program that submits jobs. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from steelyard.node.base import Node
from steelyard.system.one_server import data
from steelyard.system.packaged import CURL
from steelyard.system.spark_hdfs._settings import (
    NAMENODE_WEB,
    Settings,
    conf,
    excluded,
    hdfs_properties,
    job_properties,
)

NAMENODE: Final = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE: Final = "org.apache.hadoop.hdfs.server.datanode.DataNode"
MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
SHELL: Final = "org.apache.hadoop.fs.FsShell"
ADMIN: Final = "org.apache.hadoop.hdfs.tools.DFSAdmin"
SCALA: Final = "2.13"
OPENS: Final = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
"""Packages of java.base that Spark opens on Java 17: the list of its own launcher."""
LOGGING: Final = """\
status = error
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.target = SYSTEM_ERR
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%rEx{{2}}
logger.requests.name = http.requests
logger.requests.level = warn
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
"""The probe's requests would fill the log, and there are no native libraries. Of an error its cause is written, without
most of the stack, so that the last lines give the reason why a daemon ended."""


def of_node(settings: Settings, node: Node, master: Node, own_name: str) -> Mapping[str, str]:
    """Files of a node's configuration: name to text. `own_name`: that of the node's kernel, which must have
    an address."""
    properties = hdfs_properties(settings, node, master)
    core = {name: value for name, value in properties.items() if not name.startswith("dfs.")}
    return {
        "core-site.xml": _xml(core),
        "hdfs-site.xml": _xml({name: value for name, value in properties.items() if name not in core}),
        "hosts": f"{node.address} {node.address}\n{node.address} {own_name}\n",
        excluded(node).name: "",
        "log4j2.properties": LOGGING.format(level="info"),
    }


def of_empty(name_folder: Path, own_name: str) -> Mapping[str, str]:
    """Files with which a file system is made in a folder."""
    return {
        "core-site.xml": _xml({"fs.defaultFS": "hdfs://127.0.0.1:9000"}),
        "hdfs-site.xml": _xml({"dfs.namenode.name.dir": f"file://{name_folder}"}),
        "hosts": f"127.0.0.1 {own_name}\n",
    }


def java_options(conf: Path, home: Path, heap_mb: int) -> list[str]:
    """Options of the daemons' Java, and of small clients'."""
    hosts = f"-Djdk.net.hosts.file={conf / 'hosts'}"
    return [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:-UsePerfData", hosts, "-cp", f"{conf}:{home / 'jars'}/*"]


def hdfs_argv(settings: Settings, node: Node, java: Path, home: Path, main: str) -> list[str]:
    """Command line of a NameNode or DataNode, or of a client of HDFS."""
    return [str(java), *java_options(conf(node), home, settings.heap_mb), main]


def spark_argv(settings: Settings, node: Node, java: Path, home: Path, main: str, words: Sequence[str]) -> list[str]:
    """Command line of a Master or Worker."""
    options = [f"-Xmx{settings.heap_mb}m", "-XX:+UseSerialGC", "-XX:-UsePerfData", *_opens()]
    # Otherwise a Master whose port is taken would listen at the next one.
    options += ["-Dspark.port.maxRetries=0", "-Dspark.decommission.enabled=true"]
    options += ["-cp", f"{conf(node)}:{home / 'jars'}/*"]
    return [*_variables(node, home), str(java), *options, main, *words]


def of_client(settings: Settings, node: Node, master: Node, java: Path, home: Path, curl: str) -> Mapping[str, str]:
    """Files of a load node, in its folder `conf`: the scripts `submit` and `remove`."""
    given = [word for item in job_properties(settings, node, master).items() for word in ("--conf", "=".join(item))]
    options = [f"-Xmx{settings.submit_memory_mb}m", *_opens(), "-cp", f"{conf(node)}:{home / 'jars'}/*"]
    submit = shlex.join(["exec", *_variables(node, home), str(java), *options, SUBMIT, *given])
    remove = shlex.join(["exec", curl, *CURL, "--output", "/dev/null", "--request", "DELETE"])
    files = f"http://{master.address}:{NAMENODE_WEB}/webhdfs/v1"
    return {
        "log4j2.properties": LOGGING.format(level="warn"),
        "submit": f'{submit} "$@"\n',
        "remove": f'{remove} "{files}/${{1#hdfs://*/}}?op=DELETE&recursive=true"\n',
    }


def _variables(node: Node, home: Path) -> list[str]:
    """Environment of Spark's processes on a node."""
    variables = {
        "SPARK_HOME": home,
        "SPARK_SCALA_VERSION": SCALA,
        "SPARK_CONF_DIR": conf(node),
        "SPARK_LOCAL_IP": node.address,
        "SPARK_LOCAL_DIRS": data(node) / "spark",
    }
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def _opens() -> list[str]:
    return [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]


def _xml(properties: Mapping[str, str]) -> str:
    """A file of Hadoop's properties."""
    rows = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    ]
    return f'<?xml version="1.0"?>\n<configuration>\n{"".join(rows)}</configuration>\n'
