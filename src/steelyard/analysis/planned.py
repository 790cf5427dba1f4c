"""Treatments that the design of a study has: levels that were never planned are not missing."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistics.main_effect import fraction_of
from steelyard.analysis.treatments import Treatment
from steelyard.heavy import pl
from steelyard.judging.design import treatments_of
from steelyard.model.study import Level, Study


def planned(frame: TrialFrame, study: Study) -> Callable[[Treatment], bool]:
    """Whether a treatment is part of the design, or was measured all the same.

    One-at-a-time, listed and fractional designs leave out combinations of levels; the others have all.
    """
    fraction = fraction_of(frame, study)
    if study.design.kind in ("full-factorial", "same") or (study.design.kind == "fractional" and fraction is None):
        return lambda treatment: True
    known = {_key(frame, one) for one in (*treatments_of(study, fraction), *frame.treatments())}
    return lambda treatment: _key(frame, treatment) in known


def _key(frame: TrialFrame, treatment: Treatment) -> tuple[Level | None, ...]:
    """The levels of a treatment as the frame's columns hold them."""
    levels = ((frame.data.schema[name], treatment.get(name)) for name in frame.names)
    return tuple(str(level) if dtype == pl.String and level is not None else level for dtype, level in levels)
