"""Look at a study: one reading of its verdicts, at the end of its plan or before; decision 0020."""

from __future__ import annotations

from steelyard.model.value import Value


class Look(Value):
    """One look at a study, or at two of them."""

    number: int = 1
    """From 1; a further look is one after trials were added to a plan that was finished."""
    several: bool = False
    """Whether the study has said beforehand that it may continue."""
    confidence: float = 0.95
    """Confidence of the intervals at this look."""
    done: int = 0
    """Whole blocks."""
    planned: int = 0
    """Planned blocks; 0 if the plan is not known."""
    at_most: bool = False
    """Whether a stopping rule may end the study before its last block."""
    missing: int = 0
    """Trials that the plan still needs."""

    @property
    def final(self) -> bool:
        """Whether its verdicts are final."""
        return not self.missing and (self.several or self.number == 1)

    @property
    def next_confidence(self) -> float:
        """Confidence at the look that follows this one."""
        return (1 + self.confidence) / 2 if self.several else self.confidence

    def planning_confidence(self, confidence: float) -> float:
        """Confidence to plan further blocks with, after an interval with `confidence`: that of the next look if these
        blocks are one, otherwise the same (of the end of the plan, or of a new study)."""
        return (1 + confidence) / 2 if self.several and not self.missing else confidence

    def beyond(self, more: int) -> bool:
        """Whether this number of further blocks is more than the plan still has."""
        return more > self.planned - self.done

    @property
    def sentence(self) -> str:
        """First thing that a reader must know; empty at the only look of a finished study."""
        if self.missing:
            blocks = f"{'at most ' if self.at_most else ''}{self.planned} block{'' if self.planned == 1 else 's'}"
            return f"unfinished: {self.done} of {blocks}; no verdict is final"
        if self.several:
            return f"look {self.number}, at {100 * self.confidence:.4g}%"
        if self.number > 1:
            return (
                f'look {self.number} of a study with one look (analysis.looks = "one"), which has spent its error; no '
                "verdict is final: measure a new study"
            )
        return ""


ONE_LOOK = Look()
"""The only look at a finished study."""
