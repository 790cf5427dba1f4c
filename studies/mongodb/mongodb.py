"""System: a MongoDB cluster that exists, loaded through YCSB's binding. Not tested against a real MongoDB.

Nothing of it is started, stopped or configured. The engine `ycsb.py` writes rows to its database `steelyard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from steelyard.dropin.contacts import parsed
from steelyard.model.data_model import Schema
from steelyard.model.errors import CommandFailed, StudyError
from steelyard.model.facts import PROMISE
from steelyard.model.load import Load
from steelyard.model.value import Value
from steelyard.node.base import Node, with_port
from steelyard.node.command import run
from steelyard.system.base import Endpoint
from steelyard.wire.order import YCSB_BINDING, YcsbBindingTarget

OPENS = 'exec 3<>"/dev/tcp/$0/$1"'
ASK_TIMEOUT_S = 10.0


class Settings(Value):
    """What a study can set."""

    contact_points: tuple[str, ...] = Field(min_length=1)
    """Servers, as `10.0.0.1` or `10.0.0.1:27018`."""


class Mongodb:
    """See `steelyard.system.base.System`, and the abilities `Existing` and `ValidatesLoad`."""

    name = "mongodb"
    version = "as it is"
    protocol = YCSB_BINDING
    memory_mb_per_node = 0
    watched = False

    def __init__(self, settings: Settings) -> None:
        self.contacts = [parsed(text, YcsbBindingTarget.port) for text in settings.contact_points]

    def problems(self, nodes: int, load: Load) -> Iterator[StudyError]:
        """An error for another number of nodes than contact points."""
        if nodes != len(self.contacts):
            what = f"site.nodes is {nodes}, but system.contact_points names {len(self.contacts)}"
            yield StudyError(what, "set it to the number of contact points", key="site.nodes", read=nodes)

    def members(self, lent: Sequence[Node], loaders: Sequence[Node]) -> tuple[Node, ...]:
        """The servers, as nodes on which no commands can be run; the first load node asks whether they answer."""
        self.client = loaders[0]
        return tuple(
            Node(
                f"n{number}", "database", host, (), Path("/"), commands=False, programs="own", files="through",
                processes="through", hardware=host, kernel=host,
            )
            for number, (host, _) in enumerate(self.contacts, start=1)
        )  # fmt: skip

    async def ready(self, node: Node, members: int) -> bool:
        """Whether its port is open, as the load node sees it. YCSB says whether it is a MongoDB."""
        host, port = self.contacts[int(node.name[1:]) - 1]
        try:
            await run(self.client, ["bash", "-c", OPENS, host, str(port)], timeout_s=ASK_TIMEOUT_S, watch=True)
        except CommandFailed:
            return False
        return True

    async def waiting_for(self, node: Node) -> str:
        """What is missing."""
        return f"{node.address} does not answer {self.client.name}"

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        """The contact points. YCSB compares no values."""
        return Endpoint(self.protocol, tuple(with_port(*one) for one in self.contacts), compared=False)

    async def facts(self, node: Node) -> Mapping[str, str]:
        """What `ycsb.py` asks for: the server is not asked for its version or its settings."""
        return {
            "managed": "false: an existing cluster",
            f"{PROMISE}mongodb": "MongoDB acknowledges a write once a majority of the replica set has it "
            "(w = majority), and the primary answers reads (readPreference = primary).",
        }

    async def differing(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Nothing was asked for."""
        return {}

    async def _nothing(self, *_: object) -> None:
        """Nothing is installed, started, stopped or removed. MongoDB creates a collection with its first row."""

    prepare = install = start = create_schema = stop = kill = wipe = _nothing

    async def process_ids(self, node: Node) -> tuple[int, ...]:
        """Unknown: none."""
        return ()

    def logs(self, node: Node) -> tuple[Path, ...]:
        """None: they are the owner's."""
        return ()


def create(settings: Settings, cache_folder: Path) -> Mongodb:
    """Make the system; no side effects."""
    return Mongodb(settings)
