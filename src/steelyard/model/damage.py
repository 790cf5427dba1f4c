"""Damage: a file of a store that is not as it was written, what is done without it, and how to mend it.

The store's readers turn everything that can be wrong with a file into this. They pass the file over, so that the rest
can still be read; whoever shows numbers of the store shows its damages with them.
"""

from __future__ import annotations

from steelyard.model.value import Value


class Damage(Value):
    """One file or folder that is passed over, or read although it was changed."""

    file: str
    """Path relative to the study's folder."""
    what: str
    """What is wrong with it."""
    effect: str = ""
    """What this means for the numbers: `not counted`."""
    remedy: str = ""
    harmless: bool = False
    """Whether no number depends on it."""

    def words(self) -> str:
        """The damage as a line."""
        return f"{self.file}: {self.what}{'; ' if self.effect else ''}{self.effect}"
