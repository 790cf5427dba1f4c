"""Readings of a store's samples, and covariates of links that were measured after the trials were sealed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from steelyard.events.kept import LinksMeasured
from steelyard.heavy import pl
from steelyard.judging.covariates import covariates_of
from steelyard.judging.dilation import COVARIATE, modelled_links
from steelyard.judging.gauge import AFTER
from steelyard.judging.measures import Readings, metrics_of, seconds_of
from steelyard.model import power, responses
from steelyard.model.trial import Attempt, TrialRecord
from steelyard.store.read import Store


def with_links_after(store: Store, records: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """The records with the covariates of links as they were after the last trial of their start, whose names end in
    `_after`. They are in the journal, because a trial is sealed before it is known to be the last."""
    events = [entry.event for entry in store.journal() if isinstance(entry.event, LinksMeasured)]
    links = {event.cluster: event.links for event in events}
    return tuple(
        record.model_copy(update={"covariates": {**record.covariates, **_after(record, links[record.start])}})
        if record.start in links
        else record
        for record in records
    )


def _after(record: TrialRecord, links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Covariates of paths that were measured after a record's start, in modelled time if the record is."""
    k = record.covariates.get(COVARIATE, 1.0)
    measured = covariates_of({}, links if k == 1 else modelled_links(links, k))
    return {f"{name}{AFTER}": value for name, value in measured.items()}


def over_time(names: Collection[str]) -> tuple[str, ...]:
    """Those of the responses that have a value in each second: means over time of samples."""
    known = responses.measured_by_samples()
    return tuple(
        name
        for name in names
        if name in known and (measure := known[name].measure) and measure.how == "mean" and measure.per != "operation"
    )


def series(store: Store, records: Sequence[TrialRecord], names: Sequence[str]) -> list[tuple[Attempt, pl.DataFrame]]:
    """One frame per trial, a row per second of its measured phases in order: `place`, the second's number from 0, and a
    column for each response, the mean over its nodes. Seconds that a node's readings do not cover have no row."""
    frames = []
    for record in records:
        readings, facts = readings_of_table(store.samples(record), metrics_of(names)), store.facts(record)
        by_name = {name: seconds_of(name, record, readings, facts) for name in names}
        length = max((len(values) for values in by_name.values()), default=0)
        columns = {name: [*values, *[None] * (length - len(values))] for name, values in by_name.items()}
        frame = pl.DataFrame({"place": range(length), **columns}, schema_overrides=dict.fromkeys(names, pl.Float64))
        frames.append((record.key, frame.drop_nulls()))
    return frames


def readings_of_table(samples: pl.DataFrame, metrics: Collection[str]) -> Readings:
    """Samples with columns node, t_s, metric, value as readings by node and metric; `power.ANY` names all in watts."""
    chosen = pl.col("metric").is_in(list(metrics))
    if power.ANY in metrics:
        chosen |= pl.col("metric").str.ends_with(power.ENDING)
    wanted = samples.filter(chosen)
    rows = wanted.select("node", "metric", "t_s", "value").drop_nulls().rows()
    nodes: dict[str, dict[str, list[tuple[float, float]]]] = {str(node): {} for node in samples["node"].unique()}
    for node, metric, t_s, value in sorted(rows):
        nodes[node].setdefault(metric, []).append((t_s, value))
    return nodes
