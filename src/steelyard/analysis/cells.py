"""Value of each cell: the number that the report's answer quotes, for `status`, live tables and pages.

It goes by the same rule as the report: used trials only (valid, after the cut of warm-up trials, no control trials),
geometric mean of start means.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.comparisons.level_ratios import centre
from steelyard.analysis.frame import TrialFrame, frame_of, start_means
from steelyard.analysis.treatments import Treatment, label
from steelyard.analysis.wording import quantities
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.model.value import Value

VALUE_HEAD = "geometric mean"
"""Head of the column of `value_text`."""


class CellValue(Value):
    """The main response of one treatment over its used trials."""

    treatment: Treatment
    cell: str
    """`workload A, 3 nodes`."""
    response: str
    n: int
    """Used trials."""
    starts: int
    """Starts that the used trials came from."""
    value: Estimate | None = None
    """Geometric mean of start means, with an interval from three starts on; None without a used trial."""
    value_text: str = ""
    """The value with its unit, the same unit in all cells: `902 ms`; empty without a used trial."""


def cell_values(records: Sequence[TrialRecord], study: Study) -> tuple[CellValue, ...]:
    """Each treatment's main response, as the report counts it, in the order of the study's levels."""
    return cells_of(frame_of(records, study), study.analysis.response, study.analysis.confidence)


def cells_of(frame: TrialFrame, response: str, confidence: float = 0.95) -> tuple[CellValue, ...]:
    """Each treatment's response over its used trials, in the order of the factors' levels."""
    unit = unit_of(response)
    cells = []
    for treatment in frame.treatments():
        starts = start_means(frame.values(response, treatment), response)
        value = centre([mean for _, mean, _ in starts], unit, confidence) if starts else None
        cells.append(
            CellValue(
                treatment=treatment,
                cell=label(treatment),
                response=response,
                n=sum(n for *_, n in starts),
                starts=len(starts),
                value=value,
            )
        )
    texts = iter(quantities([one.value.value for one in cells if one.value is not None], unit))
    return tuple(one if one.value is None else one.model_copy(update={"value_text": next(texts)}) for one in cells)
