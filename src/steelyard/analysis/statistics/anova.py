"""Split-plot analysis of variance: each factor against the error of its level of randomisation.

A study is a split plot. Hard-to-change factors are randomised over starts (whole plots), the others over trials within
a start (sub-plots), so there are two kinds of error (F. Yates, Complex experiments, Supplement to the Journal of the
Royal Statistical Society 2, 1935). Block and start are random: block effects are removed from the starts, and start
effects from comparisons within a start. With one start per combination there is no error term for hard factors.

F and p are of logarithms, as the comparisons' are: treatments of unlike size have unlike spread in milliseconds, and
an equal ratio is an unequal difference. Within starts each factor has the error of its own contrasts, what it changes
from start to start, with Greenhouse and Geisser's correction where there are several.

The arithmetic is in `inference.variance_table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import effect_sizes
from steelyard.analysis.inference.gaps import place_comes_out
from steelyard.analysis.inference.multiplicity import holm_within
from steelyard.analysis.inference.variance_table import (
    CONSTANT,
    MOST_FACTORS_CROSSED,
    Table,
    Term,
    contrasts,
    crossed,
    table,
)
from steelyard.analysis.row import NO_UNIT, Column, MeasuredRow, Number, P
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import number, p_equals
from steelyard.heavy import np, pl
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of

Form = Literal["published", "honest"]
"""published: over trials, counted as independent; honest: each term against the error of its own level."""
Stratum = Literal["starts", "within starts", "trials"]
"""Where the error comes from: differences between starts; differences of treatments within a start; trials."""
Scale = Literal["logarithms", "as measured"]
LOGARITHMS: Scale = "logarithms"
SQUARED = "squared unit of column `unit`; of logarithms none"
_AGAINST = {
    "starts": "what starts differ", "within starts": "what the term changes from start to start",
    "trials": "what trials differ",
}  # fmt: skip


class AnovaTerm(MeasuredRow):
    """One line of an analysis of variance, or the reason why a level of randomisation has none."""

    form: Form
    """Honest: each term against the error of the level that was randomised. Published: over trials, counted as
    independent."""
    scale: Scale
    """Values analysed: logarithms of the means of a start, where all values are above 0, or values as measured. Where
    there are logarithms, F and p are theirs, and what is as measured has sums of squares only."""
    stratum: Stratum
    """Where the error comes from: differences between starts; differences of treatments within starts; trials."""
    term: str
    """Factors of the term, joined by ` x `; block; error, within starts `start x` the factors that it is the error
    of."""
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
    epsilon: Number = None
    """Greenhouse and Geisser's epsilon, of terms within starts with two degrees of freedom or more: p is that of F with
    both degrees of freedom times it. 1: the contrasts are equally certain."""
    p: P = None
    """p-value of F."""
    p_holm: Annotated[float | None, Column(unit=NO_UNIT, head="p (Holm)", is_p=True)] = None
    """p of F, with Holm's correction over the terms of the form."""
    method: str = ""
    """How F and p were computed; they are statistics of a test and have no interval."""
    note: str = ""
    """Why a term is missing, or what was left out."""


PLACE: Final = "place_in_block"
PLACE_OUT = "the place of a start in its block is taken out"
INTERACTS = 0.05
"""Significance level of an interaction, before Holm's correction: lenient, because it only warns."""
CROSS = " x "


def anova(
    frame: TrialFrame, response: str, confidence: float = 0.95, further: Sequence[str] = ()
) -> tuple[AnovaTerm, ...]:
    """Both levels of the split plot (`honest`), and trials counted as independent (`published`), over all factors.

    p-values of each form are corrected together (Holm), with those of the same analysis by the `further` responses.
    """
    honest, published = _forms(frame, response, confidence)
    others = [_forms(frame, name, confidence) for name in further]
    return (
        *_corrected(honest, [term for form, _ in others for term in form]),
        *_corrected(published, [term for _, form in others for term in form]),
    )


def _forms(frame: TrialFrame, response: str, confidence: float) -> tuple[list[AnovaTerm], list[AnovaTerm]]:
    """The terms of both forms, uncorrected."""
    rows = frame.values(response).with_columns(pl.col(response).cast(pl.Float64))
    names = [name for name in frame.names if rows[name].n_unique() > 1]
    if not names:
        return [], []
    rows = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in names))
    scales = scales_of(rows[response])
    honest: list[AnovaTerm] = []
    for scale in scales:
        about = _About(response, confidence, scale, tested=scale == scales[0])
        honest += _split_plot(rows, names, [name for name in names if name in frame.hard], about)
    table_of_trials = table(rows[response].to_list(), _columns(rows, names), crossed(names))
    about = _About(response, confidence, "as measured", tested=True, form="published")
    return honest, list(about.lines(table_of_trials, "trials", "trials are counted as independent"))


def scales_of(values: pl.Series) -> tuple[Scale, ...]:
    """The scales that values are analysed on, first the one of the tests: logarithms where all are above 0."""
    return (LOGARITHMS, "as measured") if bool((values > 0).all()) else ("as measured",)


def mean_on(scale: Scale, response: str) -> pl.Expr:
    """The mean of the trials of a cell, or its logarithm."""
    mean = pl.col(response).cast(pl.Float64).mean()
    return mean.log() if scale == LOGARITHMS else mean


def _columns(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, list[object]]:
    return {name: rows[name].to_list() for name in names}


def _split_plot(rows: pl.DataFrame, names: Sequence[str], hard: Sequence[str], about: _About) -> Iterator[AnovaTerm]:
    """Hard factors against what starts differ, the others and their interactions against what these change from start
    to start. A start counts that has every combination of the others; its mean weights them equally."""
    easy = [name for name in names if name not in hard]
    mean = mean_on(about.scale, about.response).alias("y")
    cells = rows.group_by("start", "block", *names, maintain_order=True).agg(mean, pl.col(PLACE).first())
    wanted = cells.select(easy).n_unique() if easy else 1
    whole = cells.filter(pl.len().over("start") == wanted).sort("start", *easy, maintain_order=True)
    starts = whole.group_by("start", "block", *hard, maintain_order=True).agg(pl.col("y"), pl.col(PLACE).first())
    dropped = cells["start"].n_unique() - starts.height
    note = f"{dropped} starts without every combination of {' and '.join(easy)} are left out" if dropped else ""
    per_cell = starts.group_by(hard).len()["len"].to_list() if hard and starts.height else [starts.height]
    if max(per_cell) < 2:
        once = f"each combination of {' and '.join(hard)} was started once" if hard else "there is one start"
        once = once if starts.height else f"no start has every combination of {' and '.join(easy)}"
        missing: tuple[tuple[Stratum, Sequence[str], str], ...] = (
            ("starts", hard, "differences between starts cannot be separated from differences between levels"),
            ("within starts", easy, "how a difference changes from start to start is not known"),
        )
        for stratum, factors, why in missing:
            if factors and about.tested:
                yield about.refused(stratum, factors, starts.height, f"{once}, so there is no error term: {why}")
        return
    y = np.asarray(starts["y"].to_list())
    if hard:
        yield from _between_starts(y.mean(axis=1), starts, hard, note, about)
    if easy:
        treatments = _columns(whole.head(wanted), easy)
        yield from _within_starts(y, _columns(starts, hard), treatments, note, about)


def _between_starts(
    y: np.ndarray, starts: pl.DataFrame, hard: Sequence[str], note: str, about: _About
) -> Iterator[AnovaTerm]:
    terms, names = crossed(hard), [*hard, PLACE]
    covariates: tuple[str, ...] = ()
    if blocked(starts, hard):
        terms, names, covariates = [("block",), *terms], [*names, "block"], placed(starts, hard)
        note = "; ".join(filter(None, [note, PLACE_OUT if covariates else ""]))
    elif starts["block"].n_unique() > 1:
        note = "; ".join(part for part in (note, "too few blocks are whole: their effect stays in the error") if part)
    yield from about.lines(table(y, _columns(starts, names), terms, covariates), "starts", note)


def blocked(starts: pl.DataFrame, names: Sequence[str]) -> bool:
    """Whether what blocks differ is taken out of starts, as in comparisons of levels: where no combination of levels
    was started twice in a block, and enough blocks have all. `starts`: a row per start, with its block and levels."""
    combinations = starts.select(names).n_unique()
    once = starts.select("block", *names).n_unique() == starts.height
    whole = int((starts.group_by("block").len()["len"] == combinations).sum())
    return once and (combinations - 1) * (whole - 1) >= FEWEST_STARTS - 1


def placed(starts: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """The column of places, if they are taken out of what starts differ as in comparisons (`inference.gaps`), for every
    contrast of the combinations of levels."""
    levels = starts.select(names).n_unique()
    whole = starts.filter(pl.len().over("block") == levels).sort("block", *names)
    places = whole[PLACE].to_numpy().reshape(-1, levels).T
    return (PLACE,) if place_comes_out(places, np.eye(levels) - 1 / levels) else ()


def _within_starts(
    y: np.ndarray, hard: dict[str, list[object]], easy: dict[str, list[object]], note: str, about: _About
) -> Iterator[AnovaTerm]:
    """`y`: a row per start, a column per treatment within it; `easy`: the levels of the treatments."""
    for inner in crossed(list(easy)):
        of_term = contrasts(easy, inner, crossed(list(easy)))
        if not of_term.shape[1]:
            continue
        outer = [CONSTANT, *(term for term in crossed(list(hard)) if len(term) + len(inner) <= MOST_FACTORS_CROSSED)]
        yield from about.lines(table(y @ of_term, hard, outer), "within starts", note, inner)


@dataclass(frozen=True)
class _About:
    """Common part of the lines of one form and scale; `tested`: they have F and p."""

    response: str
    confidence: float
    scale: Scale
    tested: bool
    form: Form = "honest"

    def refused(self, stratum: Stratum, names: Sequence[str], n: int, why: str) -> AnovaTerm:
        """A stratum without an error term."""
        return AnovaTerm(
            form=self.form, scale=self.scale, stratum=stratum, term=CROSS.join(names), response=self.response,
            unit=unit_of(self.response), n=n, note=why,
        )  # fmt: skip

    def lines(self, fitted: Table, stratum: Stratum, note: str, inner: Term = ()) -> Iterator[AnovaTerm]:
        """The terms of a table, each joined with the factors `inner` within starts, and the error."""
        common = {
            "form": self.form, "scale": self.scale, "stratum": stratum, "response": self.response,
            "unit": unit_of(self.response), "n": fitted.n, "note": note,
        }  # fmt: skip
        for line in fitted.lines:
            tested: dict[str, Any] = {}
            if self.tested and line.f is not None:
                degrees = fitted.degrees(line.df)
                tested = {
                    "f": line.f, "p": line.p, "epsilon": fitted.epsilon,
                    "eta_squared": effect_sizes.eta_squared(line.f, *degrees, self.confidence, fitted.n),
                    "method": f"{method_of(self.scale, fitted, line.df)}, against {_AGAINST[stratum]}",
                }  # fmt: skip
            yield AnovaTerm(
                **common, **tested, term=CROSS.join((*line.term, *inner)), df=line.df, error_df=fitted.error_df,
                sum_of_squares=line.squares, mean_square=line.squares / line.df,
            )  # fmt: skip
        if fitted.error_df > 0:
            yield AnovaTerm(
                **common, term=CROSS.join(("start", *inner)) if inner else "error", df=fitted.error_df,
                sum_of_squares=fitted.error_squares, mean_square=fitted.error_squares / fitted.error_df,
            )  # fmt: skip


def method_of(scale: Scale, fitted: Table, df: int) -> str:
    """Method of F of a term and of its p."""
    ends = " and ".join(number(one, digits=3) for one in fitted.degrees(df))
    by = " (Greenhouse and Geisser)" if fitted.epsilon is not None else ""
    return f"{'on logarithms, ' if scale == LOGARITHMS else ''}F with {ends} degrees of freedom{by}"


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
        scale = "on logarithms, " if term.scale == LOGARITHMS else ""
        degrees = ", ".join(number((term.epsilon or 1) * (df or 0), digits=3) for df in (term.df, term.error_df))
        depends = "may depend" if term.p_holm is not None and term.p_holm >= INTERACTS else "depends"
        sentences.append(
            f"The effect of {first} {depends} on {' and '.join(rest)} ({scale}F({degrees}) = {term.f:.3g}, "
            f"p {p_equals(term.p)}, with Holm's correction p {p_equals(term.p_holm)}): read it level by level; one "
            "effect over all levels says little."
        )
    return sentences


STATISTIC = Statistic(
    name="anova",
    row=AnovaTerm,
    title="Analysis of variance of {response}",
    section=Section.SENSITIVITY,
    compute=lambda context: anova(context.frame, context.response, context.confidence, context.further_responses),
    sentences=interactions,
    order=10,
    sentence_order=20,
)
