"""Forecast of the further starts that would decide a comparison, and of their duration at the study's pace."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.power import MOST_STARTS, More
from steelyard.format import brief_forecast, confidence_text, count, forecast, number
from steelyard.heavy import np, pl
from steelyard.judging.t_interval import POWER
from steelyard.model.look import ONE_LOOK, Look

WITH_POWER = f"with a chance of {POWER:.0%}"
ONE_LOOK_SPENT = "this study is looked at once: with blocks added to it no verdict would be final"
BEYOND = "over"
"""First word of a number of blocks that is not known: more than a search tries."""
USUAL_MARGIN_PERCENT = 10.0
"""Margin of the cheaper question, where the study declares none."""
MOST_PERCENT = 900.0
"""A change above it is said as more than tenfold."""


@dataclass(frozen=True)
class Forecast:
    """Further starts that would decide, and what they cost: one more start per side is one more block."""

    more: More | None
    block_s: float | None
    starts: int = 0
    """Starts per side so far."""
    look: Look = ONE_LOOK

    def short(self) -> str:
        """Short form for a table: `for 3% 14 more blocks (about 2 h 50)`; `for ±3%`: until it lies within that."""
        if self.more is None:
            return f"more than {MOST_STARTS:,} more blocks"
        within = "\N{PLUS-MINUS SIGN}" if self.more.shows == "equivalence" else ""
        return f"for {within}{self._change()} {self.blocks(self.more.starts)}"

    def words(self) -> str:
        """The forecast as a sentence."""
        if self.more is None:
            return self.never()
        if self.more.shows == "equivalence":
            what = f"show that it lies within {self._change()}"
        else:
            what = f"detect a change of {self._change()}"
        return self.would(self.more.starts, what)

    def would(self, more: int, what: str = "decide") -> str:
        """`about 14 more blocks (about 2 h 50 min) would decide, with a chance of 80%`, and what they cost."""
        cost = ""
        if self.look.beyond(more):
            cost = (
                f"; that is a further look, at {confidence_text(self.look.next_confidence)}"
                if self.look.several
                else f"; {ONE_LOOK_SPENT}"
            )
        return f"about {self.blocks(more)} would {what}, {WITH_POWER}{cost}"

    def never(self) -> str:
        """A sentence that no number of blocks would decide."""
        return f"not even {MOST_STARTS:,} more blocks would decide"

    def brief(self) -> str:
        """Form for a column: `+14 blocks, 2.8 h` of this study, `24 blocks, 5 h` of a new one; `±5%: 24 blocks, 5 h`
        until the change lies within that."""
        if self.more is None:
            return f"{BEYOND} {MOST_STARTS:,} blocks"
        needed, new_study = self._needed(self.more.starts)
        within = f"\N{PLUS-MINUS SIGN}{self._change()}: " if self.more.shows == "equivalence" else ""
        seconds = self.seconds(needed)
        lasts = "" if seconds is None else f", {brief_forecast(seconds)}"
        return f"{within}{'' if new_study else '+'}{count(needed, 'block')}{lasts}"

    def _needed(self, more: int) -> tuple[int, bool]:
        """The blocks to measure for this many further ones, and whether they need a new study."""
        new_study = self.look.beyond(more) and not self.look.several
        return (more + self.starts if new_study else more), new_study

    def blocks(self, more: int) -> str:
        """`14 more blocks (about 2 h 50 min)`; `24 blocks in a new study (about 5 h)` if this one has no look left."""
        needed, new_study = self._needed(more)
        seconds = self.seconds(needed)
        lasts = "" if seconds is None else f" (about {forecast(seconds)})"
        return (
            f"{count(needed, 'block')} in a new study{lasts}" if new_study else f"{count(needed, 'more block')}{lasts}"
        )

    def seconds(self, more: int) -> float | None:
        """Duration of this many blocks; None if the pace is not known."""
        return None if self.block_s is None else more * self.block_s

    def _change(self) -> str:
        """`3%`, or `more than tenfold` where a percentage says nothing."""
        percent = 0.0 if self.more is None else self.more.percent
        return f"{number(percent, digits=2, trim=True)}%" if percent <= MOST_PERCENT else "more than tenfold"


def block_s(frame: TrialFrame) -> float | None:
    """Duration of one more block (each combination of hard levels started once) at the pace of these trials, seconds.

    A start takes the span of its attempts, voided ones too, and the time since the start before it ended, each as the
    median over the starts of its combination (the second over all), so that a study that was interrupted keeps its
    pace. None below two starts.
    """
    by_start = frame.data.group_by("start", *frame.hard).agg(
        pl.col("begun_s").min(), pl.col("ended_s").fill_null(pl.col("begun_s")).max()
    )
    ordered = by_start.sort("begun_s", "start")
    if ordered["start"].n_unique() < 2:
        return None
    begun, ended = ordered["begun_s"].to_numpy(), ordered["ended_s"].to_numpy()
    between = float(np.median(np.maximum(begun[1:] - ended[:-1], 0.0)))
    served = ordered.with_columns(span=pl.col("ended_s") - pl.col("begun_s"))
    each = served.group_by(frame.hard).agg(pl.col("span").median()) if frame.hard else served.select(pl.median("span"))
    return float(each["span"].sum()) + each.height * between
