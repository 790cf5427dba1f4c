"""Client of a load: how it asks the system and over which connections. The protocol decides what of it a system has."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from steelyard.model.value import Value, later

Consistency = Literal["ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"]


class Client(Value):
    """How operations are sent, as far as the system's protocol has it: consistency, routing, connections."""

    read_consistency: Consistency = "ONE"
    """How many replicas must answer a read or a scan."""
    write_consistency: Consistency = "ONE"
    """How many replicas must acknowledge an update or an insert."""
    routing: Literal["token", "round-robin"] = "token"
    """token: send to a replica; round-robin: send to each node in turn."""
    connections_per_node: int = Field(default=1, ge=1, le=1024)
    """Connections from each load node to each database node; with sharded nodes (ScyllaDB), to each shard."""
    compression: Literal["none", "lz4", "snappy"] = "none"
    """Compression of the native protocol's frames, in both directions."""
    tls: bool = False
    """Encrypt every connection."""
    tls_ca: str | None = None
    """PEM file with the trusted certificate authorities, as seen from the load nodes. Default: the one that the system
    under test created (system.client_tls), else the load node's own."""
    tls_certificate: str | None = None
    """PEM file with the client's certificate, if the cluster requires one; requires tls_key."""
    tls_key: str | None = None
    """PEM file with the key of tls_certificate."""
    tls_verify: Literal["full", "chain", "none"] = "full"
    """Which parts of a node's certificate are checked: full: signature, dates and name; chain: all but the name;
    none."""
    tls_name: str | None = None
    """Name that the nodes' certificates must have, instead of each node's own name or address."""
    keep_alive: bool = later(True)
    """HTTP: keep connections open for further requests; false: open a connection for each request and close it
    afterwards. Opening it is part of the response time."""
    serializable: bool = later(False)
    """etcd: each member answers reads itself, possibly with old data; false: reads are linearizable."""
    read_from: Literal["primary", "replicas", "any"] = later("primary")
    """PostgreSQL: servers that reads and scans go to; writes always go to the primary. What a replica answers may be
    old."""

    @model_validator(mode="after")
    def _encrypted(self) -> Client:
        names = ("tls_ca", "tls_certificate", "tls_key", "tls_name")
        given = [name for name in names if getattr(self, name) is not None]
        if self.tls_verify != "full":
            given.append("tls_verify")
        if given and not self.tls:
            raise ValueError(f"{given[0]} needs tls = true")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: give both or none")
        return self


SECTION = "client."
"""Section of a study file whose settings complete settings hold in `load`: ids of trials hash them there."""
OF_CLIENT = re.compile(rf"\bload\.({'|'.join(Client.model_fields)})\b")


def held(field: str) -> str:
    """A field as complete settings and stores name it: `client.routing` -> `load.routing`; others as they are."""
    return f"load.{field.removeprefix(SECTION)}" if field.startswith(SECTION) else field


def as_client(text: str) -> str:
    """A text with the client's settings as section `client` spells them: `load.routing` -> `client.routing`."""
    return OF_CLIENT.sub(rf"{SECTION}\1", text)
