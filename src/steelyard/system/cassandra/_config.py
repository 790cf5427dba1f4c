"""Configuration of a node: folders, files, command line. Pure, except for `write`."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from steelyard.model.secret import references
from steelyard.node import files
from steelyard.node.base import Node, is_loopback, with_port
from steelyard.node.secrets import revealed
from steelyard.system.cassandra._java import module_options
from steelyard.system.cassandra._settings import JvmOption, Settings, YamlKey

MAIN = "org.apache.cassandra.service.CassandraDaemon"

START_FAST = {
    "cassandra.ring_delay_ms": "100",
    "cassandra.skip_wait_for_gossip_to_settle": "0",
    "cassandra.gossip_quarantine_delay_ms": "60000",
    "cassandra.superuser_setup_delay_ms": "0",
    "cassandra.shutdown_announce_in_ms": "0",
    "cassandra.load_ring_state": "false",
    "cassandra.size_recorder_interval": "0",
}
"""Waits that only matter where unknown nodes join a ring; without them a node is ready seconds earlier."""

RING_DELAY = "cassandra.ring_delay_ms"
QUARANTINE = "cassandra.gossip_quarantine_delay_ms"
SETTLE = "cassandra.skip_wait_for_gossip_to_settle"


@dataclass(frozen=True)
class Folders:
    """Folders of a node."""

    root: Path

    @property
    def conf(self) -> Path:
        """Folder of cassandra.yaml and logback.xml."""
        return self.root / "conf"

    @property
    def storage(self) -> Path:
        """Everything that `wipe` removes except logs."""
        return self.root / "storage"

    @property
    def data(self) -> Path:
        """Folder of SSTables: keyspace/table-id/."""
        return self.storage / "data"

    @property
    def logs(self) -> Path:
        """Folder of system.log, gc.log, and the output of the virtual machine."""
        return self.root / "logs"

    @property
    def keys(self) -> Path:
        """Folder of secrets, which is never copied into the store: the key for client encryption, passwords."""
        return self.root / "keys"

    @property
    def management_password(self) -> Path:
        """File with the user and the password of the management beans, for the server and its callers."""
        return self.keys / "management.password"

    @property
    def secret_options(self) -> Path:
        """File with those options of the virtual machine that hold a secret: everybody reads command lines."""
        return self.keys / "jvm.options"

    @property
    def process(self) -> Path:
        """File with process id and start time of the server."""
        return self.root / "cassandra.pid"


def yaml_of(settings: Settings, node: Node, peers: Sequence[Node]) -> dict[str, Any]:
    """The node's `cassandra.yaml`: Cassandra's own defaults except for names, paths, tokens, and the study's settings.

    The first nodes are all seeds, know their tokens and do not bootstrap, so that a ring starts in parallel. A node
    that is not among its `peers` joins them.
    """
    storage, line = Folders(node.folder).storage, settings.line
    seeds = [with_port(peer.address, settings.storage_port) if line.units else peer.address for peer in peers]
    asked: dict[str, Any] = {
        "cluster_name": "steelyard",
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        **_place_in_ring(settings, node, peers),
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": ",".join(seeds)}],
            }
        ],
        "endpoint_snitch": "SimpleSnitch",
        "listen_address": node.address,
        "rpc_address": node.address,
        "start_native_transport": True,
        "data_file_directories": [str(storage / "data")],
        "commitlog_directory": str(storage / "commitlog"),
        "hints_directory": str(storage / "hints"),
        "saved_caches_directory": str(storage / "saved_caches"),
        "cdc_raw_directory": str(storage / "cdc_raw"),
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "10000ms",
        # As in the release's own cassandra.yaml; the default in the code differs.
        "storage_compatibility_mode": "CASSANDRA_4",
        **{key.name: key.value(setting) for _, key, setting in settings.annotated(YamlKey)},
    }
    if settings.client_tls:
        asked["client_encryption_options"] = client_encryption(node)
    return {**line.written(asked), **settings.yaml}


def joins(node: Node, peers: Sequence[Node]) -> bool:
    """Whether a node joins `peers`, which run: it is not one of them. In its own list of seeds it would not stream."""
    return node.name not in [peer.name for peer in peers]


def _place_in_ring(settings: Settings, node: Node, peers: Sequence[Node]) -> dict[str, Any]:
    if joins(node, peers):
        # Cassandra chooses its tokens so that the copies are spread evenly over the ring as it is then.
        return {
            "auto_bootstrap": True,
            "allocate_tokens_for_local_replication_factor": settings.replication_factor,
        }
    index = [peer.name for peer in peers].index(node.name)
    ring = tokens(index, len(peers), settings.num_tokens)
    return {"initial_token": ",".join(map(str, ring)), "auto_bootstrap": False}


def waits(settings: Settings, *, joining: bool) -> dict[str, str]:
    """Properties of the server that say for how long it waits for other nodes. Pure."""
    properties = {**START_FAST}
    if joining:
        # As Cassandra does it itself: the time that a join takes is measured.
        del properties[RING_DELAY], properties[SETTLE]
    if settings.ring_delay_ms is not None:
        properties[RING_DELAY] = str(settings.ring_delay_ms)
    return properties


def quarantine_s(settings: Settings) -> float:
    """Time for which nodes ignore the address of one that left."""
    own = [option for option in settings.jvm_options if option.startswith(f"-D{QUARANTINE}=")]
    return float(own[-1].partition("=")[2] if own else START_FAST[QUARANTINE]) / 1000.0


LOCALHOST = "127.0.0.1"
KEY_STORE = "clients.p12"
KEY_STORE_PASSWORD = "throw-away"
"""Java requires a password. The key that it protects exists only for one lease."""


def client_encryption(node: Node) -> dict[str, Any]:
    """`client_encryption_options`: clients may encrypt but need not; so the laboratory's own queries stay unencrypted,
    and whether the load is encrypted can differ from trial to trial."""
    return {
        "enabled": True,
        "optional": True,
        "keystore": str(Folders(node.folder).keys / KEY_STORE),
        "keystore_password": KEY_STORE_PASSWORD,
        "store_type": "PKCS12",
    }


MANAGEMENT_USER = "steelyard"
MANAGEMENT_ACCESS = "management.access"
"""File in the folder of keys: permissions of the user. Without `create`, not even it can have the server load
classes."""


def management_address(node: Node) -> str:
    """Address on which a node's management beans listen: never on a real network, as nothing is encrypted. In a network
    namespace of this machine that is the node's own address, so that one client reaches all nodes."""
    alone = node.programs == "same" or is_loopback(node.address)
    return node.address if alone else LOCALHOST


def management_properties(settings: Settings, node: Node) -> dict[str, str]:
    """Properties of the virtual machine's own management agent: Cassandra's binds every address, and loopback nodes
    would collide. Who calls the beans runs code as the server's user, so a password is required (decision 0018)."""
    folders = Folders(node.folder)
    remote = "com.sun.management.jmxremote"
    return {
        f"{remote}.port": str(settings.jmx_port),
        f"{remote}.rmi.port": str(settings.jmx_port),
        f"{remote}.host": management_address(node),
        "java.rmi.server.hostname": management_address(node),
        f"{remote}.ssl": "false",
        f"{remote}.authenticate": "true",
        f"{remote}.password.file": str(folders.management_password),
        # The clients read the same file.
        f"{remote}.password.toHashes": "false",
        f"{remote}.access.file": str(folders.keys / MANAGEMENT_ACCESS),
    }


def garbage_options(settings: Settings) -> list[str]:
    """Collector and heap, with the options that Cassandra's `jvm17-server.options` gives to G1."""
    heap = [f"-Xms{settings.heap_mb}M", f"-Xmx{settings.heap_mb}M"]
    if settings.gc == "serial":
        return [*heap, "-XX:+UseSerialGC"]
    return [
        *heap,
        "-XX:+UseG1GC",
        "-XX:+ParallelRefProcEnabled",
        "-XX:MaxTenuringThreshold=1",
        "-XX:MaxGCPauseMillis=300",
        "-XX:InitiatingHeapOccupancyPercent=70",
    ]


def server_argv(
    settings: Settings,
    java: Path,
    jars: Sequence[Path],
    node: Node,
    archive: Sequence[str] = (),
    *,
    joining: bool = False,
) -> list[str]:
    """The server's command line, with `java` and `jars` as the node sees them and without secrets. `archive`: options
    that use or create an archive of loaded classes; `joining`: the node joins a cluster that runs."""
    folders = Folders(node.folder)
    secret = _secret_options(settings)
    properties = {
        **waits(settings, joining=joining),
        "cassandra.config": f"file://{folders.conf / 'cassandra.yaml'}",
        "cassandra.storagedir": str(folders.storage),
        "cassandra.logdir": str(folders.logs),
        "logback.configurationFile": str(folders.conf / "logback.xml"),
        **management_properties(settings, node),
        "cassandra.triggers_dir": str(folders.conf / "triggers"),
        "java.io.tmpdir": str(folders.root / "tmp"),
        "java.net.preferIPv4Stack": "false" if ":" in node.address else "true",
        "io.netty.tryReflectionSetAccessible": "true",
        **settings.line.properties,
    }
    return [
        str(java),
        *archive,
        "-ea",
        "-Xss256k",
        *garbage_options(settings),
        "-XX:+PerfDisableSharedMem",
        "-XX:+ExitOnOutOfMemoryError",
        f"-Xlog:gc:file={folders.logs / 'gc.log'}:utctime,uptime:filecount=3,filesize=20m",
        *module_options(),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *(option.text.format(setting) for _, option, setting in settings.annotated(JvmOption)),
        *(option for option in settings.jvm_options if option not in secret),
        *([f"@{folders.secret_options}"] if secret else []),
        "-cp",
        os.pathsep.join(str(jar) for jar in jars),
        MAIN,
    ]


def _secret_options(settings: Settings) -> list[str]:
    return [option for option in settings.jvm_options if any(references([option]))]


def argument_file(options: Sequence[str]) -> str:
    """Options as Java's launcher reads them from a file: quoted, one per line. Pure."""
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
    return "".join(f'"{option.translate(escapes)}"\n' for option in options)


async def write(settings: Settings, node: Node, peers: Sequence[Node]) -> None:
    """Create the folders and configuration files of a node. Idempotent, but for the password of its management beans:
    a new one each time, so that the password of a server that has ended opens no other."""
    folders = Folders(node.folder)
    await files.make_folders(
        node, folders.conf / "triggers", folders.data, folders.logs, folders.keys, folders.root / "tmp"
    )
    # JSON is YAML, and needs no further library. Secrets are in plain text only here, in a file that only we can read.
    text = json.dumps(revealed(yaml_of(settings, node, peers)), indent=2)
    await files.put(node, folders.conf / "cassandra.yaml", f"{text}\n".encode(), mode=0o600)
    logback = (resources.files(__package__) / "logback.xml").read_bytes()
    await files.put(node, folders.conf / "logback.xml", logback)
    if secret := _secret_options(settings):
        await files.put(node, folders.secret_options, argument_file(revealed(secret)).encode(), mode=0o600)
    # A running server reads both at every connection.
    await files.put(
        node, folders.management_password, f"{MANAGEMENT_USER} {secrets.token_urlsafe()}\n".encode(), mode=0o600
    )
    await files.put(node, folders.keys / MANAGEMENT_ACCESS, f"{MANAGEMENT_USER} readwrite\n".encode(), mode=0o600)


def tokens(index: int, nodes: int, per_node: int) -> tuple[int, ...]:
    """Evenly interleaved tokens of node `index` of `nodes`, so that every node can start at once and owns exactly its
    share. Token j of the ring's c = nodes * per_node lies at -2^63 + 1 + j * 2^64 / c; node i gets j = i, i + nodes,
    i + 2 * nodes ..."""
    if not 0 <= index < nodes:
        raise ValueError(f"node {index} of {nodes}")
    count = nodes * per_node
    return tuple(-(2**63) + 1 + (turn * nodes + index) * 2**64 // count for turn in range(per_node))
