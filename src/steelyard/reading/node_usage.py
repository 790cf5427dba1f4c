"""Resource use of nodes: the probes' readings during the measured phases, one row per node and metric."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.heavy import pl
from steelyard.model.facts import role_of
from steelyard.model.trial import TrialRecord
from steelyard.reading.usage import measured_samples
from steelyard.store.read import Store

SCHEMA = {
    "trial_id": pl.String(),
    "attempt": pl.Int64(),
    "node": pl.String(),
    "role": pl.String(),
    "metric": pl.String(),
    "readings": pl.Int64(),
    "mean": pl.Float64(),
    "max": pl.Float64(),
}


def usage_of(store: Store, records: Sequence[TrialRecord]) -> pl.DataFrame:
    """Mean and greatest reading of each metric on each node over the measured phases of these trials, without their
    warm-up: the columns of `SCHEMA`, by trial, node and metric. A trial without samples has no rows."""
    frames = [pl.DataFrame(schema=SCHEMA)]
    for record in records:
        samples = measured_samples(store.samples(record), record)
        if samples.is_empty():
            continue
        facts = store.facts(record)
        roles = {str(node): role_of(str(node), facts) for node in samples["node"].unique()}
        used = samples.group_by("node", "metric").agg(
            readings=pl.len().cast(pl.Int64), mean=pl.col("value").mean(), max=pl.col("value").max()
        )
        named = used.with_columns(
            trial_id=pl.lit(record.id),
            attempt=pl.lit(record.attempt, pl.Int64),
            role=pl.col("node").replace_strict(roles, return_dtype=pl.String),
        )
        frames.append(named.select(list(SCHEMA)).sort("node", "metric"))
    return pl.concat(frames)
