"""Note on a dilated study: its numbers are in the time of the hardware that it models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.frame import TrialFrame
from steelyard.format import listed
from steelyard.judging.dilation import COVARIATE
from steelyard.model.study import Study
from steelyard.model.trial_columns import COVARIATE as PREFIX

UNCHANGED: Final = "processor time, bytes in all, counts and shares are as measured"


def dilations_of_study(study: Study) -> tuple[float, ...]:
    """The dilations that a study asks for, each once, in order."""
    levels = study.values_of(("node.dilation",), study.node.dilation)
    return tuple(sorted({float(level) for level in levels}))


def dilations_of_frame(frame: TrialFrame) -> tuple[float, ...]:
    """The dilations of a frame's trials, each once, in order."""
    if f"{PREFIX}{COVARIATE}" not in frame.data.columns:
        return (1.0,)
    column = frame.data[f"{PREFIX}{COVARIATE}"].fill_null(1.0)
    return tuple(sorted({float(value) for value in column}))


def sentence(dilations: Sequence[float]) -> str:
    """Quantities divided and multiplied; empty if nothing is dilated."""
    stretched = [k for k in dilations if k != 1]
    if not stretched:
        return ""
    if len(dilations) > 1:
        named = listed([f"{k:g}" for k in dilations])
        return (
            f"Trials ran in stretched time (dilations {named}): each trial's times are those of the clock divided by "
            f"its dilation, its rates multiplied by it; {UNCHANGED}."
        )
    k = stretched[0]
    return (
        f"The trials ran in stretched time (dilation {k:g}): limits and offered rates were divided by {k:g}. Times are "
        f"those of the clock divided by {k:g}, rates multiplied by {k:g}; {UNCHANGED}."
    )
