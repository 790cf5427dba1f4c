"""A store as the reading half opens it: in the time of the hardware that its trials model, at the look that it gives.

Trials of a study with `node.dilation` keep the times of the clock. Here they are divided back, together with their
intervals, samples, facts and links (`judging.dilation`); all other trials are as they were sealed. Verification and the
laboratory read the clock's times, from `Store`. The study has the confidence of this look (`judging.looks`), so that
every interval of the reading half has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.heavy import pl
from steelyard.judging.dilation import modelled, modelled_facts, modelled_links, modelled_value
from steelyard.judging.looks import later
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store import layout
from steelyard.store.read import Store, study_folder

BUCKETS: Final = ("bucket_low_ns", "bucket_high_ns")


class ModelledStore(Store):
    """One study's folder, with dilated trials in modelled time."""

    @property
    def study(self) -> Study:
        """The study as it was last run, with the confidence of this look."""
        return later(super().study, self.look)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every sealed attempt, in order of time, in modelled time; as `Store.trials`."""
        return tuple(modelled(record) for record in super().trials())

    def attempt(self, name: str) -> TrialRecord:
        """One sealed attempt in modelled time; as `Store.attempt`."""
        return modelled(super().attempt(name))

    def intervals(self, record: TrialRecord) -> pl.DataFrame:
        """Histogram buckets of every load node; as `Store.intervals`."""
        rows = super().intervals(record)
        return rows if _dilation(record) == 1 else rows.with_columns(**_stretched_back(record))

    def operations(
        self, records: Iterable[TrialRecord], phases: Sequence[str], measures: Sequence[str] = ("response",)
    ) -> pl.LazyFrame:
        """Buckets of operations; as `Store.operations`."""
        every = tuple(records)
        rows = super().operations(every, phases, measures)
        for record in every:
            k, own = _dilation(record), pl.col("trial") == layout.trial_folder(record.id, record.attempt)
            if k != 1:
                columns = _stretched_back(record)
                rows = rows.with_columns(
                    pl.when(own).then(column).otherwise(pl.col(name)).alias(name) for name, column in columns.items()
                )
        return rows

    def samples(self, record: TrialRecord) -> pl.DataFrame:
        """Samples of every node; as `Store.samples`."""
        rows, k = super().samples(record), _dilation(record)
        if k == 1 or rows.is_empty():
            return rows
        factors = {str(name): modelled_value(str(name), 1.0, k) for name in rows["metric"].unique()}
        factor = pl.col("metric").replace_strict(factors, return_dtype=pl.Float64)
        return rows.with_columns(value=pl.col("value") * factor, t_s=_within(record))

    def facts(self, record: TrialRecord) -> dict[str, dict[str, str]]:
        """Facts by name, limits in modelled time; as `Store.facts`."""
        k, facts = _dilation(record), super().facts(record)
        return facts if k == 1 else {name: modelled_facts(own, k) for name, own in facts.items()}

    def links(self, record: TrialRecord) -> list[dict[str, Any]]:
        """Measured paths; as `Store.links`."""
        k, links = _dilation(record), super().links(record)
        return links if k == 1 else modelled_links(links, k)


def open_store(path: Path) -> ModelledStore:
    """The store at `path` in modelled time: a study's folder, or a folder that holds exactly one. Raises StoreError."""
    return ModelledStore(study_folder(path))


def _dilation(record: TrialRecord) -> float:
    return record.settings.node.dilation


def _within(record: TrialRecord) -> pl.Expr:
    """Times within the trial, counted from its beginning; those before it stay."""
    since_s = pl.col("t_s") - record.begun_s
    return pl.when(since_s > 0).then(record.begun_s + since_s / _dilation(record)).otherwise(pl.col("t_s"))


def _stretched_back(record: TrialRecord) -> dict[str, pl.Expr]:
    """Columns of intervals in modelled time, by name."""
    k = _dilation(record)
    buckets = {name: (pl.col(name) / k).round().cast(layout.INTERVAL_SCHEMA[name]) for name in BUCKETS}
    return {"t_s": _within(record), "seconds": pl.col("seconds") / k, **buckets}
