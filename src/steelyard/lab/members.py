"""Members of a start's cluster: which nodes are in service now, which join or leave, which wait to be used."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.node.base import Node


class Members:
    """The database nodes of a start. Only activities change it."""

    def __init__(self, in_service: Sequence[Node], spares: Sequence[Node] = ()) -> None:
        self.in_service = tuple(in_service)
        """Nodes that serve, those that are leaving included."""
        self.spares = tuple(spares)
        """Nodes that are lent and were never started, in the order in which they are used."""
        self.started = self.in_service
        """Nodes on which the system was started, those that left or failed included, in order of start."""
        self.leaving: tuple[Node, ...] = ()
        self.changed = False
        """Whether a node has been started or has begun to leave since the start of the cluster."""

    @property
    def all(self) -> tuple[Node, ...]:
        """Every node, spares last."""
        return (*self.started, *self.spares)

    @property
    def steady(self) -> tuple[Node, ...]:
        """Nodes in service that stay, without those that are leaving."""
        return tuple(node for node in self.in_service if node not in self.leaving)

    def begin_join(self) -> Node:
        """The next spare, which is started from now on. Raises IndexError without one."""
        node, self.spares = self.spares[0], self.spares[1:]
        self.started, self.changed = (*self.started, node), True
        return node

    def joined(self, node: Node) -> None:
        """A started node has come into service."""
        self.in_service = (*self.in_service, node)

    def begin_leave(self) -> Node:
        """The youngest member, which leaves from now on."""
        node = self.steady[-1]
        self.leaving, self.changed = (*self.leaving, node), True
        return node

    def left(self, node: Node) -> None:
        """A leaving node is gone. A name is used once per start, so it is no spare afterwards."""
        self.in_service = tuple(other for other in self.in_service if other != node)
        self.leaving = tuple(other for other in self.leaving if other != node)
