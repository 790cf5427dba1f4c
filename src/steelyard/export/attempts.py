"""Attempts that an export contains, and their names in it."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.model.trial import TrialRecord
from steelyard.store import layout


def exported(records: Iterable[TrialRecord], *, voided: bool) -> tuple[TrialRecord, ...]:
    """The attempts to export, in order of time: without the voided ones, unless they are asked for."""
    return tuple(record for record in records if voided or not record.verdict.voided)


def attempt_name(record: TrialRecord) -> str:
    """Name of an attempt in every export: that of its folder in the store."""
    return layout.trial_folder(record.id, record.attempt)


def dilation_of(record: TrialRecord) -> dict[str, str]:
    """The mark of an attempt whose times are not those of the clock: `dilation` to its number; nothing for others."""
    k = record.settings.node.dilation
    return {} if k == 1 else {"dilation": f"{k:g}"}
