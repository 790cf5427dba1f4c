"""Scaling policy of a trial: its name, the sizes that it may ask for, its own settings. Section `policy` of a study."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from pydantic import model_validator

from steelyard.model.value import Choice, later

NONE: Final = "none"
SCHEDULED: Final = "scheduled"
STATIC_MAX: Final = "static-max"
"""Policy whose cluster has the largest size from its start on."""
THRESHOLD, THRESHOLD_OF = "threshold", "threshold_of"
"""Setting with the value at which a policy acts, and the one that names a derived level in its place."""
KEEPING: Final = (NONE, STATIC_MAX)
"""Policies whose cluster keeps its size."""
MOST_NODES: Final = 1000
NO_CONTROL: Final = (
    f'every treatment changes the size of its cluster: without a control that keeps it (level "{NONE}" of a factor '
    "`policy`), what changes over time anyhow (warm servers, compactions, other programs) cannot be distinguished from "
    "the change of size"
)
"""What a study lacks of which no treatment keeps its size."""


class PolicyChoice(Choice):
    """Scaling policy. Without a name the cluster keeps its size."""

    name: str = later(NONE)
    """none: the cluster keeps its size; scheduled: it is given the sizes of `times` while it serves; others follow a
    metric (docs/howto/choose-a-scaling-policy.md). A factor over names compares them with a control that keeps its
    size: each takes only its own settings of this section."""
    min_nodes: int | None = later(None, ge=1, le=MOST_NODES)
    """Smallest size that the policy may ask for (AWS: MinSize); default: `site.nodes`. Policy scheduled says its sizes
    itself."""
    max_nodes: int | None = later(None, ge=1, le=MOST_NODES)
    """Largest size that the policy may ask for (AWS: MaxSize). Policy scheduled says its sizes itself."""
    joins: int | None = later(None, ge=0, le=MOST_NODES)
    """Number of joins for which nodes are lent beforehand; default: one for each node between `site.nodes` and
    `max_nodes`. A node that has left does not join again, so a policy that shrinks and grows needs more."""

    @model_validator(mode="after")
    def _in_order(self) -> PolicyChoice:
        if self.name not in (NONE, SCHEDULED) and self.max_nodes is None:
            raise ValueError(f"policy {self.name} needs max_nodes, the largest size that it may ask for")
        if self.min_nodes is not None and self.max_nodes is not None and self.min_nodes > self.max_nodes:
            raise ValueError(f"min_nodes = {self.min_nodes} is above max_nodes = {self.max_nodes}")
        return self

    @property
    def changes(self) -> bool:
        """Whether a cluster under this policy may change its size."""
        return self.name not in KEEPING

    @property
    def times(self) -> tuple[tuple[float, int], ...]:
        """The sizes of policy `scheduled`, each with its seconds of the measured phase."""
        times: Any = self.settings.get("times", ()) if self.name == SCHEDULED else ()
        return tuple((float(at_s), int(nodes)) for at_s, nodes in times)

    @property
    def threshold_of(self) -> str:
        """Name of the derived level that is its threshold; empty if it states the threshold itself, or has none."""
        return str(self.settings.get(THRESHOLD_OF) or "")

    def least(self, nodes: int) -> int:
        """The smallest size of a cluster that begins with this number of nodes."""
        if self.times or self.min_nodes is None or not self.changes:
            return min((nodes, *(size for _, size in self.times)))
        return min(nodes, self.min_nodes)

    def most(self, nodes: int) -> int:
        """The largest size of a cluster that begins with this number of nodes."""
        if self.times or self.max_nodes is None or not self.changes:
            return max((nodes, *(size for _, size in self.times)))
        return max(nodes, self.max_nodes)

    def lent(self, nodes: int) -> int:
        """Number of nodes that are lent to a cluster that begins with this number: the first, and one for each join.
        A node that has left does not join again."""
        if self.joins is not None and self.changes:
            return nodes + self.joins
        if not self.times:
            return self.most(nodes)
        sizes = (nodes, *(size for _, size in self.times))
        return nodes + sum(max(0, after - before) for before, after in pairwise(sizes))
