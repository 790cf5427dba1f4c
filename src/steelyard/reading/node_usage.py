"""Resource use of nodes: the probes' readings during the measured phases, one row per node and metric."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.heavy import pl
from steelyard.judging.measures import READING_S, belongs
from steelyard.model.facts import role_of
from steelyard.model.trial import TrialRecord
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


Span = tuple[float, float]


def measured_samples(samples: pl.DataFrame, span: Span | None) -> pl.DataFrame:
    """The readings of a measured span (`judging.measures.belongs`) in order of time, with two columns more:
    `from_s`, since when each covers its node, and `covered_s`, how much of the span."""
    if span is None:
        return samples.clear().with_columns(from_s=pl.col("t_s"), covered_s=pl.col("t_s"))
    before = pl.col("t_s").shift(1).over("node", "metric")
    covering = samples.sort("node", "t_s").with_columns(from_s=before.fill_null(pl.col("t_s") - READING_S))
    low, high = pl.max_horizontal("from_s", pl.lit(span[0])), pl.min_horizontal("t_s", pl.lit(span[1]))
    return covering.filter(belongs(pl.col("from_s"), pl.col("t_s"), span)).with_columns(covered_s=high - low)


def mean_over_time() -> pl.Expr:
    """The mean of `value`, each reading weighted by the time that it covers."""
    return (pl.col("value") * pl.col("covered_s")).sum() / pl.col("covered_s").sum()


def use_of_nodes(samples: pl.DataFrame, span: Span | None) -> pl.DataFrame:
    """A row per node and metric: `readings` of the measured span, their `mean`, weighted by the time that each covers,
    and their `max`."""
    grouped = measured_samples(samples, span).group_by("node", "metric")
    return grouped.agg(readings=pl.len().cast(pl.Int64), mean=mean_over_time(), max=pl.col("value").max())


def usage_of(store: Store, records: Sequence[TrialRecord]) -> pl.DataFrame:
    """Mean and highest reading of each metric on each node over the measured phases of these trials, without their
    warm-up: the columns of `SCHEMA`, by trial, node and metric. A trial without samples has no rows."""
    frames = [pl.DataFrame(schema=SCHEMA)]
    for record in records:
        used = use_of_nodes(store.samples(record), record.measured_span)
        if used.is_empty():
            continue
        facts = store.facts(record)
        roles = {str(node): role_of(str(node), facts) for node in used["node"].unique()}
        named = used.with_columns(
            trial_id=pl.lit(record.id),
            attempt=pl.lit(record.attempt, pl.Int64),
            role=pl.col("node").replace_strict(roles, return_dtype=pl.String),
        )
        frames.append(named.select(list(SCHEMA)).sort("node", "metric"))
    return pl.concat(frames)
