"""What the data themselves warn of, in sentences: interactions, changes of level, outliers, modes, where the spread is.

Pointed out, never acted upon: no trial is removed and no number changed because of it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from steelyard.analysis.findings import AnovaTerm, ChangePoint, Shape, Steady, VarianceComponents
from steelyard.analysis.results import LABELS, Results, Summary, label
from steelyard.format import count, p_equals, signed

ALPHA = 0.01
"""Below this p normality is said to be in doubt: every treatment is looked at."""
INTERACTS = 0.05
"""Level of an interaction, before Holm's correction: a warning, which is better given too often than not."""
MOST_NAMED = 3
WILD_CV = 0.3
"""Up to this coefficient of variation t intervals of skew start means hold what they say, within a point or so; at 1
they cover 86 to 91% instead of 95% (docs/explanation/coverage.md)."""

CROSS = " x "


def sentences(results: Results) -> list[str]:
    """Everything that the trials warn of, most important first."""
    return [
        *interactions(results.anova),
        *_over_the_study(results),
        *_shape(results.shapes),
        *_wild(results.summaries),
        *_spread(results.variance, results.response),
    ]


def interactions(terms: Sequence[AnovaTerm]) -> list[str]:
    """Which effects depend on which: said before any main effect, because it says when a main effect means little."""
    found = [
        one for one in terms if one.form == "honest" and CROSS in one.term and one.p is not None and one.p < INTERACTS
    ]
    said = []
    for one in found:
        first, *rest = one.term.split(CROSS)
        said.append(
            f"The effect of {first} depends on {' and '.join(rest)} (F({one.df}, {one.error_df}) = {one.f:.3g}, "
            f"p {p_equals(one.p)}, {p_equals(one.p_holm)} after Holm's correction): read it level by level; one effect "
            "over all levels says little."
        )
    return said


def _over_the_study(results: Results) -> list[str]:
    """Changes of level between starts: of all treatments together, else of single ones."""
    together = next((one for one in results.courses if one.together), None)
    if together is not None and together.changes:
        first = together.changes[0]
        more = f", and {len(together.changes) - 1} more" if len(together.changes) > 1 else ""
        at = f" {first.at_h:.1f} h into the study" if first.at_h is not None else ""
        return [
            f"Over all treatments together the level changed after start {first.after} of {together.n}{at}: "
            f"{_size(first)}{more}. Look what happened then; randomised blocks keep it out of the comparisons, but "
            "not out of the intervals."
        ]
    if together is not None and together.verdict == "drifting":
        return [f"Over all treatments together the level drifted: {together.detail}."]
    moved = [one for one in results.courses if not one.together and one.changes]
    if not moved:
        return []
    named = "; ".join(f"{label(one.treatment)}: {one.detail}" for one in moved[:MOST_NAMED])
    rest = f"; and {len(moved) - MOST_NAMED} more" if len(moved) > MOST_NAMED else ""
    return [f"The level of {count(len(moved), 'treatment')} changed over the study ({named}{rest})."]


def _size(change: ChangePoint) -> str:
    found = change.change_percent
    if found is None:
        return f"p {p_equals(change.p)}"
    ends = "" if found.low is None or found.high is None else f" [{signed(found.low)}, {signed(found.high)}]"
    return f"{signed(found.value)}%{ends}"


def _shape(shapes: Sequence[Shape]) -> list[str]:
    said = []
    several = [one for one in shapes if one.verdict.startswith("more than one mode")]
    if several:
        said.append(
            f"{_named(several)} {'has' if len(several) == 1 else 'have'} trials of more than one mode: one mean or "
            "median stands for none of them. Look whether starts or blocks differ."
        )
    outlying = [one for one in shapes if one.outliers]
    if outlying:
        total = sum(one.outliers for one in outlying)
        said.append(
            f"{count(total, 'trial')} of {_named(outlying)} {'lies' if total == 1 else 'lie'} beyond the fences of "
            "the box plot; none was removed."
        )
    odd = [one for one in shapes if one.normality_p is not None and one.normality_p < ALPHA]
    if odd:
        said.append(
            f"The trials of {_named(odd)} are not normally distributed (Shapiro and Wilk, p < {ALPHA:.0%}): medians "
            "and rank tests do not mind; intervals of means rest on means of starts, which are nearer to normal."
        )
    return said


def _wild(summaries: Sequence[Summary]) -> list[str]:
    """Treatments whose start means vary so much that their t intervals may cover too little."""
    found = [
        one
        for one in summaries
        if len(one.start_means) > 1
        and statistics.fmean(one.start_means) > 0
        and statistics.stdev(one.start_means) > WILD_CV * statistics.fmean(one.start_means)
    ]
    if not found:
        return []
    return [
        f"Start means of {_named(found)} vary by more than {WILD_CV:.0%}: t intervals of means that vary so are too "
        "narrow if they are skew (simulated, 86 to 91% at 100%); read medians, and ratios, which are on logarithms."
    ]


def _spread(components: Sequence[VarianceComponents], response: str) -> list[str]:
    """Where the main response's spread comes from, and what would narrow its intervals."""
    mine = [one for one in components if one.response == response and one.advice]
    one = next((one for one in mine if one.together), mine[0] if len(mine) == 1 else None)
    if one is None or one.between_starts is None or one.within_starts is None:
        return []
    between, within = (f"{100 * part.value:.2g}%" for part in (one.between_starts, one.within_starts))
    return [
        f"Standard deviation of {LABELS[response]}: {between} between starts, {within} between the trials of a start; "
        f"{one.advice}."
    ]


def within_trials(steady: Sequence[Steady]) -> list[str]:
    """How many trials came to a steady state within themselves; nothing where all did."""
    if not steady:
        return []
    counts = {verdict: sum(one.verdict == verdict for one in steady) for verdict in ("warm-up", "drifting", "none")}
    told = []
    if counts["drifting"]:
        told.append(f"{counts['drifting']} still moved at their end")
    if counts["warm-up"]:
        told.append(f"{counts['warm-up']} began at another level")
    if counts["none"]:
        told.append(f"{counts['none']} {'was' if counts['none'] == 1 else 'were'} too short to tell")
    if not told:
        return []
    return [f"Within {count(len(steady), 'trial')}, by the seconds: {'; '.join(told)}."]


def _named(cells: Sequence[Shape | Summary]) -> str:
    names = [label(one.treatment) for one in cells]
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{'; '.join(names[:MOST_NAMED])}{rest}"
