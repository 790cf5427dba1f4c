"""Data that a plan puts on its nodes' own disks: records, their size and their copies, against `node.disk_gb`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steelyard.format import count, data_size
from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities
from steelyard.plan.phase_times import treatment_hash
from steelyard.plan.requirements import stored_bytes

BYTES_PER_GB = 1e9
STEPS_PER_GB = 10
"""A size is offered in tenths of a GB."""


@dataclass(frozen=True)
class Tight:
    """A cluster whose nodes may not have enough disk. Bytes are those of one node."""

    settings: TrialSettings
    stored_bytes: float
    """Rows that it keeps, copies counted, if they spread evenly."""
    most_bytes: float
    """The same at its peak, with logs and rewritten files."""
    size_bytes: float

    @property
    def refused(self) -> bool:
        """Whether the rows alone do not fit."""
        return self.stored_bytes > self.size_bytes


def refusals(plan: Plan, history: Sequence[TrialRecord], abilities: Abilities) -> Iterator[StudyError]:
    """An error for the cluster whose rows are most beyond its nodes' disks. Treatments that this store has done are
    left out: they fitted."""
    beyond = [tight for tight in _tight(plan, history, abilities) if tight.refused]
    if beyond:
        worst = max(beyond, key=lambda tight: tight.most_bytes / tight.size_bytes)
        fits = math.floor(_records(worst, abilities) * worst.size_bytes / worst.most_bytes)
        # Inputs of jobs are records that do not get fewer.
        fewer = f"at most {fits:,} workload.records" if fits else "a smaller workload.input_mb"
        yield StudyError(
            _sentence(worst, abilities),
            f"{_larger(worst)}, {fewer}, fewer copies or more nodes",
            key="node.disk_gb",
            read=worst.size_bytes / BYTES_PER_GB,
        )


def notes(plan: Plan, history: Sequence[TrialRecord], abilities: Abilities) -> Iterator[str]:
    """A sentence about the cluster whose rows fit, but perhaps not its logs and compactions."""
    near = [tight for tight in _tight(plan, history, abilities) if not tight.refused]
    if near:
        worst = max(near, key=lambda tight: tight.most_bytes / tight.size_bytes)
        yield (
            f"{_sentence(worst, abilities)}; with logs and rewriting up to {data_size(worst.most_bytes)}: "
            f"{_larger(worst)}, or fewer records"
        )


def _tight(plan: Plan, history: Sequence[TrialRecord], abilities: Abilities) -> Iterator[Tight]:
    done = {treatment_hash(record.id) for record in history if record.verdict.outcome == "valid"}
    clusters: dict[str, Tight] = {}
    for trial, stored in stored_bytes(plan, abilities):
        settings = trial.settings
        nodes = settings.policy.least(settings.site.nodes)
        size = settings.node.disk_size_bytes
        if size is None or treatment_hash(trial.id) in done:
            continue
        tight = Tight(settings, stored / nodes, abilities.disk_bytes(settings, stored) / nodes, size)
        key = canonical(settings.part("site", "system", "node", "workload"))
        if tight.most_bytes > size and (key not in clusters or tight.most_bytes > clusters[key].most_bytes):
            clusters[key] = tight
    yield from clusters.values()


def _records(tight: Tight, abilities: Abilities) -> int:
    return abilities.shape(tight.settings).records


def _sentence(tight: Tight, abilities: Abilities) -> str:
    settings = tight.settings
    shape, copies, nodes = abilities.shape(settings), abilities.copies(settings), settings.site.nodes
    return (
        f"{count(shape.records, 'record')} of {shape.record_bytes:,} bytes, {count(copies, 'copy', 'copies')} on "
        f"{count(nodes, 'node')}, take {data_size(tight.stored_bytes)} per node, including writes of the trials; its "
        f"disk has {data_size(tight.size_bytes)}"
    )


def _larger(tight: Tight) -> str:
    least_gb = math.ceil(STEPS_PER_GB * tight.most_bytes / BYTES_PER_GB) / STEPS_PER_GB
    return f"node.disk_gb = {least_gb:g} (its file takes only as much space as is written)"
