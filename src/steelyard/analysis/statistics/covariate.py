"""Covariates of each start: resources of its cluster, as numbers in addition to the factors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Section, Statistic
from steelyard.heavy import pl
from steelyard.judging.gauge import AFTER
from steelyard.model.trial_columns import COVARIATE

UNITS: Final = {
    "rtt_ms_min": "ms", "rtt_ms_mean": "ms", "database_rtt_ms_min": "ms", "database_rtt_ms_mean": "ms",
    "link_mbit_per_s": "Mbit/s", "link_mbit_per_s_least": "Mbit/s", "link_loss_percent": "%",
    "cores": "cores", "memory_mb": "MiB",
}  # fmt: skip


class Covariate(TreatmentRow):
    """One covariate of one start, with the levels of its hard-to-change factors."""

    start: str
    """Start of a cluster."""
    name: str
    """rtt_ms_min, rtt_ms_mean: round trip between load and database nodes, mean over links; cores, memory_mb: what a
    database node was given, its limit or what its machine has, mean over nodes. Where links are measured in full:
    database_rtt_ms_min, database_rtt_ms_mean: round trip between database nodes; link_mbit_per_s,
    link_mbit_per_s_least: rate of one TCP connection, mean over paths and of the slowest; link_loss_percent: frames
    lost, mean. With `_after`: after the last trial of the start."""
    value: Annotated[float, Column(unit="in the unit of column `unit`")]
    """The number, as measured or read when the cluster started, or at the end of the start."""
    unit: str
    """Unit of the number."""
    n: int
    """Trials that the start served and that have it."""


def covariates(frame: TrialFrame) -> Iterator[Covariate]:
    """A row per start and covariate, in order of time."""
    names = [name for name in frame.data.columns if name.startswith(COVARIATE)]
    for start in frame.data["start"].unique(maintain_order=True) if names else ():
        rows = frame.data.filter(pl.col("start") == start)
        levels = {factor: rows[factor][0] for factor in frame.hard if rows[factor][0] is not None}
        for column in names:
            known = rows[column].drop_nulls()
            name = column.removeprefix(COVARIATE)
            if known.len():
                yield Covariate(
                    treatment=levels, start=str(start), name=name, value=float(known[0]),
                    unit=UNITS.get(name.removesuffix(AFTER), ""), n=known.len(),
                )  # fmt: skip


STATISTIC = Statistic(
    name="covariate",
    row=Covariate,
    title="Resources of each start",
    section=Section.EVERY_TRIAL,
    compute=lambda context: covariates(context.frame),
    order=20,
    appendix=True,
    of_records=True,
)
