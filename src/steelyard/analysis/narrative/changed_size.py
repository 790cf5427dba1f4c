"""Limits of trials whose cluster changed its size while it was measured, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.activities import NodeActivity
from steelyard.analysis.wording import capital
from steelyard.format import count, listed, number
from steelyard.model.policy import NO_CONTROL
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord

RING_DELAY: Final = "system.ring_delay_ms"
CASSANDRA_RING_DELAY_MS: Final = 30_000.0
AT_ONCE_S: Final = 0.1
"""What is handed over within this time was lent before: no machine is provisioned that fast."""


def limits(
    study: Study, results: Results, records: Sequence[TrialRecord], *, unsized: int, simulated: bool
) -> Iterator[str]:
    """What the activities of trials leave out or share; nothing where no cluster changed its size. `unsized`: attempts
    that are left out where the number of nodes is read as a size; `simulated`: whether every cluster was."""
    joins = [row for row in results.of(NodeActivity) if row.used and row.kind == "scale-out"]
    if unsized:
        yield (
            f"`nodes` is the size at the beginning: the {count(unsized, 'attempt')} whose cluster changed its size "
            f"while it was measured {'is' if unsized == 1 else 'are'} left out where it is read as the size (laws, "
            "speed-ups and lines over nodes), and compared as treatments elsewhere."
        )
    if any(row.used for row in results.of(NodeActivity)):
        yield (
            "Whether a trial had a steady state is not tested where its cluster changed its size: another level is "
            "then what is asked about."
        )
        if all(record.settings.policy.changes for record in records):
            yield f"{capital(NO_CONTROL)}."
    if not joins:
        return
    if "cpu" in results.shares and not results.own_limits and not simulated:
        yield (
            "A node that joins takes its processor time from the machine that all nodes share: it slows the others "
            "more than on a machine of its own."
        )
    if _warmed(study, joins, records, simulated=simulated):
        yield "A node that joins is cold: its server was not warmed up, those of the other nodes were."
    if any(row.provisioning_s is not None and row.provisioning_s < AT_ONCE_S for row in joins):
        yield (
            "Provisioning took 0 s, because spare nodes were lent before the start: this is not the time to get a "
            "machine."
        )
    yield from _ring_delay(study)


def _warmed(study: Study, joins: Sequence[NodeActivity], records: Sequence[TrialRecord], *, simulated: bool) -> bool:
    """Whether servers become faster as they serve, and those of a trial with a join had been warmed up."""
    if simulated and not (study.system.settings.get("warm_up") or "system.warm_up" in study.factors):
        return False
    joined = {(row.trial_id, row.attempt) for row in joins}
    return any(record.server_warm_up is not None and record.server_warm_up.rounds for record in records
               if record.key in joined)  # fmt: skip


def _ring_delay(study: Study) -> Iterator[str]:
    """A sentence on ring delays that are not Cassandra's own."""
    values = study.values_of((RING_DELAY,), study.system.settings.get("ring_delay_ms", ""))
    delays_ms = sorted({float(one) for one in values if isinstance(one, int | float)})
    if delays_ms and delays_ms[0] < CASSANDRA_RING_DELAY_MS:
        named = listed([number(one / 1000, trim=True) for one in delays_ms], "or")
        short_s = number((CASSANDRA_RING_DELAY_MS - delays_ms[0]) / 1000, trim=True)
        yield (
            f"The ring delay was {named} s and not Cassandra's 30 s (`{RING_DELAY}`): a join with 30 s takes up to "
            f"{short_s} s longer."
        )
