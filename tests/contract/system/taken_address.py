"""End of a server whose address another program has taken, for systems of one server per node."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from steelyard.node.base import Node
from steelyard.testing.system import until


def start_where_it_is_taken(system: Any, node: Node, port: int, timeout_s: float = 10.0) -> None:
    """Start a node's server at a taken port, and ask it once a process of it has ended. Raises the system's fault."""

    async def body() -> None:
        await system.prepare()
        await system.install(node, (node,))
        try:
            with socket.create_server((node.address, port)):
                await system.start(node, (node,))

                async def ended() -> bool:
                    return await system.death(node) is not None

                await until(ended, timeout_s, "the server ends")
                await system.ready(node, 1)
        finally:
            await system.wipe(node)

    asyncio.run(body())
