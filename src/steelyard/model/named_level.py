"""Named level: a level of a factor that sets several fields, and may have a number for regressions."""

from __future__ import annotations

from pydantic import ConfigDict

from steelyard.model.value import Value

Level = str | int | float | bool
"""One value that a factor takes."""


class NamedLevel(Value):
    """Settings of one level of a named factor: further keys are fields of the study by their dotted names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Level]

    number: float | None = None
    """The number of the level in regressions and scalability laws; without it, a level that is itself
    a number is used as it is. All levels of a factor have one, or none."""
    unit: str = ""
    """Unit of `number`, as tables and axes show it; the same for all levels of a factor."""

    @property
    def sets(self) -> dict[str, Level]:
        """The fields that the level sets, by their dotted names."""
        return dict(self.__pydantic_extra__)

    def fields_in_words(self) -> str:
        """`node.memory_mb = 1024, system.heap_mb = 256`; `nothing` where it sets none."""
        return ", ".join(f"{field} = {value}" for field, value in self.sets.items()) or "nothing"

    def number_in_words(self) -> str:
        """`1 GB`: the number of the level; empty if it has none."""
        return "" if self.number is None else f"{self.number:g} {self.unit}".strip()


def level_key(level: Level) -> str:
    """A level as text, as a study file writes it: also its key under `levels.FACTOR`."""
    return str(level).lower() if isinstance(level, bool) else str(level)
