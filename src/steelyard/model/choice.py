"""Choice of a plug-in: its name and its settings, as a study's section states them."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from steelyard.model.value import Value


class Choice(Value):
    """A plug-in by name, and its settings."""

    model_config = ConfigDict(extra="allow")

    name: str
    """Module name, entry point, or path of the plug-in."""

    @property
    def settings(self) -> dict[str, Any]:
        """All keys except those of the section itself."""
        return dict(self.__pydantic_extra__ or {})
