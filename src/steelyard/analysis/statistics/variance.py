"""Variance components of each response: between blocks, between starts, between the trials of a start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.variance_components import Components, advice, as_cv, components
from steelyard.analysis.row import FractionOrNone, RatioOrNone, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.format import number
from steelyard.heavy import pl
from steelyard.model import responses
from steelyard.model.responses import label_of


class VarianceComponents(TreatmentRow):
    """Where the spread of a response comes from: blocks, starts, the trials of a start.

    Coefficients of variation, on logarithms."""

    together: bool
    """All treatments at once, each about its own mean."""
    response: str
    """Response, as named in the store."""
    n: int
    """Used trials."""
    starts: int
    """Starts of a cluster."""
    blocks: int
    """Blocks."""
    between_blocks: FractionOrNone = None
    """Coefficient of variation between blocks."""
    between_starts: FractionOrNone = None
    """Coefficient of variation between starts."""
    within_starts: FractionOrNone = None
    """Coefficient of variation between the trials of a start."""
    icc: RatioOrNone = None
    """Intraclass correlation: variance between starts / (it + that within starts)."""
    advice: str = ""
    """Advice on narrowing the interval of a mean."""
    note: str = ""
    """Why a component is missing."""


def variance_components(
    frame: TrialFrame, responses: Sequence[str], confidence: float = 0.95
) -> tuple[VarianceComponents, ...]:
    """Components of each response: all treatments together, each about its own mean, then each treatment separately, as
    coefficients of variation on logarithms. In the response's unit the intervals cover 84% if trials vary by 25%."""
    return tuple(one for response in responses for one in _of_response(frame, response, confidence))


def _of_response(frame: TrialFrame, response: str, confidence: float) -> Iterator[VarianceComponents]:
    rows = frame.values(response)
    if frame.names:
        rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in frame.names))
    treatments = frame.treatments
    if len(treatments) > 1 and rows.height:
        yield _row(rows, frame.names, response, {}, confidence)
    for treatment in treatments:
        rows = frame.values(response, treatment)
        if rows.height:
            yield _row(rows, (), response, treatment, confidence)


def _row(
    rows: pl.DataFrame, names: Sequence[str], response: str, treatment: Treatment, confidence: float
) -> VarianceComponents:
    """Components on logarithms, after the means of the treatments by `names` are removed."""
    about: dict[str, Any] = {
        "treatment": treatment, "together": bool(names), "response": response, "n": rows.height,
        "starts": rows["start"].n_unique(), "blocks": rows["block"].n_unique(),
    }  # fmt: skip
    if float(rows[response].cast(pl.Float64).min()) <= 0:  # type: ignore[arg-type]
        return VarianceComponents(**about, note="a value of 0 or less has no logarithm: no coefficients of variation")
    of_starts, treatments = rows["start"].to_list(), list(rows.select(names).iter_rows()) if names else None
    spread = components(
        rows[response].cast(pl.Float64).log().to_list(), of_starts, blocks=rows["block"].to_list(),
        treatments=treatments, confidence=confidence,
    )  # fmt: skip
    means = len(set(zip(of_starts, treatments or of_starts, strict=True)))
    starts = round(means / len(set(treatments))) if treatments else means
    return VarianceComponents(
        **{**about, "starts": spread.starts, "blocks": spread.blocks},
        between_blocks=as_cv(spread.between_blocks), between_starts=as_cv(spread.between_starts),
        within_starts=as_cv(spread.within_starts), icc=spread.icc, note=_note(spread),
        advice=advice(spread, rows.height / means, starts, confidence),
    )  # fmt: skip


def _note(spread: Components) -> str:
    if spread.starts < 2:
        return "one start: variation between starts is not known"
    if spread.within_starts is None:
        return "one trial per start: variation between trials cannot be separated from variation between starts"
    if spread.between_starts is None:
        return (
            "each treatment has one start: variation between starts cannot be separated from variation between "
            "treatments"
        )
    if spread.between_blocks is None and spread.blocks > 1:
        return "each block has one start of a treatment: variation between blocks is counted between starts"
    return ""


def sources_of_spread(components: Sequence[VarianceComponents], response: str) -> list[str]:
    """Sentence on the sources of the main response's spread, and on what would narrow its intervals."""
    mine = [one for one in components if one.response == response and one.advice]
    row = next((one for one in mine if one.together), mine[0] if len(mine) == 1 else None)
    if row is None or row.between_starts is None or row.within_starts is None:
        return []
    between, within = (f"{number(100 * part.value, digits=2)}%" for part in (row.between_starts, row.within_starts))
    return [
        f"Standard deviation of {label_of(response)}: {between} between starts, {within} between the trials of a "
        f"start; {row.advice}."
    ]


def _of_context(context: Context) -> Iterator[VarianceComponents]:
    data = context.frame.data
    rest = [name for name in responses.every() if name != context.response and data[name].is_not_null().any()]
    for response in (context.response, *rest):
        compute = partial(variance_components, context.frame, [response], context.confidence)
        yield from context.once(VarianceComponents, response, compute)


STATISTIC = Statistic(
    name="variance",
    row=VarianceComponents,
    title="Where the spread comes from: blocks, starts, trials of a start",
    section=Section.SPREAD,
    compute=_of_context,
    sentences=sources_of_spread,
    order=20,
    sentence_order=60,
)
