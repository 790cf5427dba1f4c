"""A link as it was asked for beside the link as it was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from steelyard.judging.gauge import TOLERANCE
from steelyard.model.link import LinkChoice

BASE_ROUND_TRIP_MS: Final = 0.5
"""Round trip of kernels and programs at both ends, besides the link's own: a measured one may be longer by this."""
AFTER: Final = "_after"
"""End of the name of a covariate that was measured after the last trial of a start."""


class AskedAndMeasured(NamedTuple):
    """One number of a link."""

    quantity: str
    covariate: str
    """Name of the covariate that is the measured number."""
    unit: str
    asked: float | None
    """None where the link does not say, or nothing single can be said: of a radio channel that stations share."""
    measured: float
    differs: bool
    """Whether it differs from what was asked by more than TOLERANCE. Loss never does: too few frames are sent
    to tell."""


def asked_and_measured(link: LinkChoice, covariates: Mapping[str, float], end: str = "") -> Iterator[AskedAndMeasured]:
    """The numbers of a link that a start has measured in full; none where only round trips were measured. `end`: AFTER
    for those after the last trial."""
    if f"link_mbit_per_s{end}" not in covariates:
        return
    wanted = (
        ("rate", "link_mbit_per_s", "Mbit/s", link.goodput_mbit_per_s),
        ("rate of the slowest path", "link_mbit_per_s_least", "Mbit/s", link.goodput_mbit_per_s),
        ("least round trip", "rtt_ms_min", "ms", link.round_trip_ms),
        ("loss", "link_loss_percent", "%", link.loss_percent),
    )
    for quantity, name, unit, asked in wanted:
        measured = covariates.get(f"{name}{end}")
        if measured is not None:
            yield AskedAndMeasured(quantity, name, unit, asked, measured, _differs(unit, asked, measured))


def _differs(unit: str, asked: float | None, measured: float) -> bool:
    if asked is None or unit == "%":
        return False
    slack = TOLERANCE * asked
    longest = asked + slack + (BASE_ROUND_TRIP_MS if unit == "ms" else 0.0)
    return not asked - slack <= measured <= longest
