"""Labels of treatments: `workload A, 3 nodes`."""

from __future__ import annotations

from steelyard.model.named_level import Level

WORKLOADS = frozenset({"workload", "workload.name"})
NODES = ("nodes", "site.nodes")
"""The names of the factor that counts nodes."""
Treatment = dict[str, Level]


def label(treatment: Treatment) -> str:
    """A treatment as people read it: `workload A, 3 nodes`."""
    ordered = sorted(treatment.items(), key=lambda item: item[0] in NODES)
    return ", ".join(part(name, level) for name, level in ordered) or "all trials"


def part(name: str, level: Level) -> str:
    """One factor at one level as people read it: `3 nodes`, `workload A`, `load.threads 8`."""
    if name in NODES:
        return "1 node" if level == 1 else f"{level} nodes"
    return f"{'workload' if name == 'workload.name' else name} {level}"
