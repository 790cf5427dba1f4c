"""Labels of treatments in the analysis: `workload A, 3 nodes`."""

from __future__ import annotations

from steelyard.format import NODES, factor_label, pair_label
from steelyard.format import level_label as part
from steelyard.format import treatment_label as label
from steelyard.model.named_level import Level

WORKLOADS = frozenset({"workload", "workload.name"})
Treatment = dict[str, Level]

__all__ = ["NODES", "WORKLOADS", "Treatment", "factor_label", "label", "pair_label", "part"]
