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
        """Nodes that are lent, or that their site gets when they are used, and were never started, in the order in
        which they are used."""
        self.started = self.in_service
        """Nodes on which the system was started, those that left or failed included, in order of start."""
        self.leaving: tuple[Node, ...] = ()
        self.gone: tuple[Node, ...] = ()
        """Nodes that have left."""
        self.down: tuple[str, ...] = ()
        """Names of nodes that are expected not to answer, while they are disrupted."""
        self.expectations = 0
        """Number of times that `down` was set: a look at nodes that spans a change is of no use."""
        self.changed = False
        """Whether a node has been started or has begun to leave since the start of the cluster."""

    @property
    def all(self) -> tuple[Node, ...]:
        """Every node, spares last."""
        return (*self.started, *self.spares)

    @property
    def staying(self) -> tuple[Node, ...]:
        """Nodes in service that stay, without those that are leaving."""
        return tuple(node for node in self.in_service if node not in self.leaving)

    @property
    def alive(self) -> tuple[Node, ...]:
        """Nodes in service that stay and should be alive."""
        return tuple(node for node in self.staying if node.name not in self.down)

    @property
    def unsettled(self) -> bool:
        """Whether a join or a leave has begun and was not completed, so that members differ in what they see."""
        return bool(self.leaving) or len(self.started) > len(self.in_service) + len(self.gone)

    def expect(self, down: tuple[str, ...]) -> None:
        """From now on expect of these nodes nothing, and of all others that they live."""
        self.down, self.expectations = down, self.expectations + 1

    def begin_join(self, node: Node) -> None:
        """A spare is started from now on."""
        self.spares = tuple(other for other in self.spares if other.name != node.name)
        self.started, self.changed = (*self.started, node), True

    def joined(self, node: Node) -> None:
        """A started node has come into service."""
        self.in_service = (*self.in_service, node)

    def begin_leave(self, node: Node) -> None:
        """A member leaves from now on."""
        self.leaving, self.changed = (*self.leaving, node), True

    def left(self, node: Node) -> None:
        """A leaving node is gone. A name is used once per start, so it is no spare afterwards."""
        self.in_service = tuple(other for other in self.in_service if other != node)
        self.leaving = tuple(other for other in self.leaving if other != node)
        self.gone = (*self.gone, node)
