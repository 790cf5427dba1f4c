"""Capacity of a cluster, for loads that are a fraction of it: measured once per start, workload and way of asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steelyard.judging.trial_responses import responses
from steelyard.model.errors import SystemFault
from steelyard.model.load import CAPACITY, CAPACITY_WARM_UP, MEASURE, WARM_UP, Load
from steelyard.model.study import Limits
from steelyard.model.trial import Capacity
from steelyard.wire.record import Done, Interval

RENAMED = {MEASURE: CAPACITY, WARM_UP: CAPACITY_WARM_UP}
"""Names of the measurement's phases in the store."""


def renamed(interval: Interval) -> Interval:
    """An interval of the measurement under the names of the store, so that it is not taken for the trial's."""
    return replace(interval, phase=RENAMED[interval.phase])


def capacity_of(
    load: Load,
    intervals: Sequence[Interval],
    dones: Sequence[Done],
    trial: str,
    measured_s: float,
    limits: Limits,
) -> Capacity:
    """The measured capacity. Raises SystemFault if too many operations failed."""
    measured = responses(intervals, dones)
    everything = measured.operations + measured.errors
    if not measured.throughput_per_s or measured.errors > limits.error_fraction * everything:
        raise SystemFault(
            f"capacity cannot be measured: {measured.errors:,} of {everything:,} operations failed with "
            f"{load.capacity_threads:,} in flight",
            "lower load.capacity_threads, or give load.rate_per_s",
        )
    return Capacity(
        rate_per_s=measured.throughput_per_s,
        threads=load.capacity_threads,
        seconds=(measured.execution_time_ms or 0.0) / 1000,
        operations=measured.operations,
        errors=measured.errors,
        service_ms_mean=measured.service_ms_mean,
        trial=trial,
        measured_s=measured_s,
    )
