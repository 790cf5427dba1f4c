"""Damage: a file of a store that is not as it was written, what is done without it, and how to fix it.

The store's readers turn everything that can be wrong with a file into this. They pass the file over, so that the rest
can still be read; every view of the store's numbers shows its damages with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steelyard.model.value import Value

MOST_DAMAGES: Final = 20
"""Most damages of a store that are named one by one."""
DAMAGED: Final = "damaged: "


class Damage(Value):
    """One file or folder that is skipped, or read although it was changed."""

    file: str
    """Path relative to the study's folder."""
    what: str
    """What is wrong with it."""
    effect: str = ""
    """What this means for the numbers: `not counted`."""
    hint: str = ""
    harmless: bool = False
    """Whether no number depends on it."""

    def words(self) -> str:
        """The damage as a line."""
        return f"{self.file}: {self.what}{'; ' if self.effect else ''}{self.effect}"


def damage_lines(damages: Sequence[Damage]) -> Iterator[str]:
    """Damages of a store for people, a line each, those with the same hint together and it below them."""
    shown = damages[:MOST_DAMAGES]
    for hint in dict.fromkeys(damage.hint for damage in shown):
        for damage in shown:
            if damage.hint == hint:
                yield f"{DAMAGED}{damage.words()}"
        if hint:
            yield f"  {hint}"
    if len(damages) > MOST_DAMAGES:
        yield f"and {len(damages) - MOST_DAMAGES} more: `steelyard verify STORE --json` names all"
