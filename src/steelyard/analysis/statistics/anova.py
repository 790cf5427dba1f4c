"""Split-plot analysis of variance: each factor against the error of its level of randomisation.

A study is a split plot. Hard-to-change factors are randomised over starts (whole plots), the others over trials within
a start (sub-plots), so there are two error terms (F. Yates, Complex experiments, Supplement to the Journal of the Royal
Statistical Society 2, 1935). Block and start are random: block effects are removed from the starts, and start
effects from comparisons within a start. With one start per combination there is no error term for hard factors.

The arithmetic is in `inference.variance_table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.inference.multiplicity import holm_within
from steelyard.analysis.inference.variance_table import Table, Term, crossed, table
from steelyard.analysis.row import NO_UNIT, Column, P, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import p_equals
from steelyard.heavy import pl
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of

Form = Literal["published", "honest"]
"""published: over trials, counted as independent; honest: each term against the error of its own level."""
Stratum = Literal["starts", "within starts", "trials"]
"""Where the error comes from: differences between starts; differences of treatments within a start; trials."""
SQUARED = "squared unit of column `unit`"
_AGAINST = {"starts": "what starts differ", "within starts": "start x treatment", "trials": "what trials differ"}


class AnovaTerm(Row):
    """One line of an analysis of variance, or the reason why a level of randomisation has none."""

    form: Form
    """Honest: each term against the error of the level that was randomised. Published: over trials, counted as
    independent."""
    stratum: Stratum
    """Where the error comes from: differences between starts; differences of treatments within starts; trials."""
    term: str
    """Factors of the term, joined by ` x `; block; error."""
    response: str
    """Response, as named in the store."""
    unit: str
    """Unit of the response."""
    n: int
    """Values that the stratum rests on: start means, means of a treatment in a start, or trials."""
    df: int | None = None
    """Degrees of freedom."""
    error_df: int | None = None
    """Degrees of freedom of its error."""
    sum_of_squares: Annotated[float | None, Column(unit=SQUARED)] = None
    """Sum of squares (type II)."""
    mean_square: Annotated[float | None, Column(unit=SQUARED)] = None
    """Sum of squares / df."""
    f: Annotated[float | None, Column(unit=NO_UNIT, head="F")] = None
    """Mean square / mean square of the error."""
    eta_squared: Annotated[Estimate | None, Column(unit=NO_UNIT, head="partial η²")] = None
    """Partial eta squared: sum of squares / (it + that of the error)."""
    p: P = None
    """p-value of F."""
    p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)] = None
    """The same, Holm's correction over the terms of the form."""
    method: str = ""
    """How F and p were computed; they are statistics of a test and have no interval."""
    note: str = ""
    """Why a term is missing, or what was left out."""


INTERACTS = 0.05
"""Significance level of an interaction, before Holm's correction: lenient, because it only warns."""
CROSS = " x "


def anova(
    frame: TrialFrame, response: str, confidence: float = 0.95, beside: Sequence[str] = ()
) -> tuple[AnovaTerm, ...]:
    """Both levels of the split plot (`honest`), and trials counted as independent (`published`), over all factors.

    p-values of each form are corrected together (Holm), with those of the same analysis by the responses `beside`.
    """
    honest, published = _forms(frame, response, confidence)
    others = [_forms(frame, name, confidence) for name in beside]
    return (
        *_corrected(honest, [term for form, _ in others for term in form]),
        *_corrected(published, [term for _, form in others for term in form]),
    )


def _forms(frame: TrialFrame, response: str, confidence: float) -> tuple[list[AnovaTerm], list[AnovaTerm]]:
    """The terms of both forms, uncorrected."""
    rows = frame.values(response)
    names = [name for name in frame.names if rows[name].n_unique() > 1]
    if not names:
        return [], []
    rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in names))
    hard = [name for name in names if name in frame.hard]
    easy = [name for name in names if name not in frame.hard]
    honest: list[AnovaTerm] = []
    if hard:
        honest += _between_starts(rows, response, hard, easy, confidence)
    if easy:
        honest += _within_starts(rows, response, hard, easy, confidence)
    published = _terms(
        table([float(value) for value in rows[response]], _columns(rows, names), crossed(names)),
        response, confidence, "published", "trials", "trials are counted as independent",
    )  # fmt: skip
    return honest, list(published)


def _columns(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, list[object]]:
    return {name: rows[name].to_list() for name in names}


def _between_starts(
    rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str], confidence: float
) -> Iterator[AnovaTerm]:
    """Hard factors against starts; a start's mean weights the cells of the other factors equally."""
    cells = _cell_means(rows, response, hard, easy)
    wanted = cells.select(easy).n_unique() if easy else 1
    starts = cells.group_by("start", "block", *hard, maintain_order=True).agg(pl.col(response).mean(), pl.len())
    kept = starts.filter(pl.col("len") == wanted)
    dropped = starts.height - kept.height
    per_cell = kept.group_by(hard).len()["len"].to_list() if kept.height else []
    if max(per_cell, default=0) < 2:
        yield _refused(response, "starts", hard, kept.height, (
            f"each combination of {' and '.join(hard)} was started once, so there is no error term: what one start "
            "differs from another cannot be told from what the levels differ"
        ))  # fmt: skip
        return
    columns = _columns(kept, hard)
    terms = crossed(hard)
    note = f"{dropped} starts without every combination of {' and '.join(easy)} are left out" if dropped else ""
    if _complete_blocks(kept, hard):
        columns["block"] = kept["block"].to_list()
        terms = [("block",), *terms]
    else:
        note = "; ".join(part for part in (note, "blocks are not complete: their effect stays in the error") if part)
    fitted = table([float(value) for value in kept[response]], columns, terms)
    yield from _terms(fitted, response, confidence, "honest", "starts", note)


def _complete_blocks(starts: pl.DataFrame, hard: Sequence[str]) -> bool:
    """Whether there are two or more blocks, each with every combination of hard factors once."""
    combinations, blocks = starts.select(hard).n_unique(), starts["block"].n_unique()
    once = starts.select("block", *hard).n_unique() == starts.height
    return blocks > 1 and combinations > 1 and once and starts.height == combinations * blocks


def _within_starts(
    rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str], confidence: float
) -> Iterator[AnovaTerm]:
    """The other factors, and their interactions with hard ones, against start x treatment."""
    cells = _cell_means(rows, response, hard, easy)
    terms: list[Term] = [term for term in crossed([*hard, *easy]) if any(name in easy for name in term)]
    columns = {**_columns(cells, [*hard, *easy]), "start": cells["start"].to_list()}
    fitted = table([float(value) for value in cells[response]], columns, [("start",), *terms])
    if fitted.error_df < 1:
        yield _refused(response, "within starts", easy, cells.height, (
            "each combination of hard-to-change factors was started once, so there is no error term: how a difference "
            "changes from start to start is not known"
        ))  # fmt: skip
        return
    kept = Table(
        fitted.n, tuple(line for line in fitted.lines if line.term != ("start",)), fitted.error_df, fitted.error_squares
    )
    yield from _terms(kept, response, confidence, "honest", "within starts", "means of the trials of a start are cells")


def _cell_means(rows: pl.DataFrame, response: str, hard: Sequence[str], easy: Sequence[str]) -> pl.DataFrame:
    """One row per start and combination of the other factors."""
    keys = ["start", "block", *hard, *easy]
    return rows.group_by(keys, maintain_order=True).agg(pl.col(response).cast(pl.Float64).mean())


def _refused(response: str, stratum: Any, names: Sequence[str], n: int, why: str) -> AnovaTerm:
    return AnovaTerm(
        form="honest", stratum=stratum, term=" x ".join(names), response=response, unit=unit_of(response), n=n, note=why
    )


def _terms(fitted: Table, response: str, confidence: float, form: Any, stratum: Any, note: str) -> Iterator[AnovaTerm]:
    common = {"form": form, "stratum": stratum, "response": response, "unit": unit_of(response), "n": fitted.n}
    for line in fitted.lines:
        eta = None
        if line.f is not None:
            eta = effect_sizes.eta_squared(line.f, line.df, fitted.error_df, confidence, fitted.n)
        yield AnovaTerm(
            **common, term=" x ".join(line.term), df=line.df, error_df=fitted.error_df, sum_of_squares=line.squares,
            mean_square=line.squares / line.df, f=line.f, p=line.p, eta_squared=eta, note=note,
            method="" if line.f is None else _method(stratum, line.df, fitted.error_df),
        )  # fmt: skip
    if fitted.error_df > 0:
        yield AnovaTerm(
            **common, term="error", df=fitted.error_df, sum_of_squares=fitted.error_squares,
            mean_square=fitted.error_squares / fitted.error_df, note=note,
        )  # fmt: skip


def _method(stratum: Stratum, df: int, error_df: int) -> str:
    return f"F of type II sums of squares against {_AGAINST[stratum]}, {df} and {error_df} degrees"


def _corrected(terms: Sequence[AnovaTerm], others: Sequence[AnovaTerm]) -> tuple[AnovaTerm, ...]:
    """Add Holm's p over the terms of one form and the same of other responses, without blocks."""
    own, further = ([None if term.term == "block" else term.p for term in form] for form in (terms, others))
    p_holm = holm_within(own, further)
    return tuple(term.model_copy(update={"p_holm": p}) for term, p in zip(terms, p_holm, strict=True))


def interactions(terms: Sequence[AnovaTerm], response: str = "") -> list[str]:
    """Sentences on interactions: they come before main effects, which mean little where an interaction is strong."""
    interacting = [
        one for one in terms if one.form == "honest" and CROSS in one.term and one.p is not None and one.p < INTERACTS
    ]
    sentences = []
    for term in interacting:
        first, *rest = term.term.split(CROSS)
        sentences.append(
            f"The effect of {first} depends on {' and '.join(rest)} (F({term.df}, {term.error_df}) = {term.f:.3g}, "
            f"p {p_equals(term.p)}, {p_equals(term.p_holm)} after Holm's correction): read it level by level; one "
            "effect over all levels says little."
        )
    return sentences


STATISTIC = Statistic(
    name="anova",
    row=AnovaTerm,
    title="Analysis of variance of {response}",
    section=Section.INTERACTIONS,
    compute=lambda context: anova(context.frame, context.response, context.confidence, context.beside),
    sentences=interactions,
    order=10,
    sentence_order=20,
)
