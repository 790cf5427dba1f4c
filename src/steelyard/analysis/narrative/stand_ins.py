"""Hardware and links that a study's nodes stand in for: what a reader takes for the thing itself."""

from __future__ import annotations

from typing import Final

from steelyard.format import listed
from steelyard.model.link import NODAL
from steelyard.model.study import Study

WHERE: Final = "docs/reference/hardware.md"
UNLIMITED: Final = "unlimited"


def sentence(study: Study) -> str:
    """Which profiles and links were made on other hardware, and where it stands what they do not model; empty where
    nothing was."""
    profiles = _named(study, ("node.profile",), study.node.profile, {"", UNLIMITED})
    links = _named(study, ("link", "link.name"), study.link.name, {NODAL})
    parts = [f"nodes were limited like {listed(profiles)}"] if profiles else []
    parts += [f"links were made like {listed(links)}"] if links else []
    if not parts:
        return ""
    return (
        f"No such hardware was measured: {' and '.join(parts)}, on the machine of the facts; what that leaves out "
        f"stands in {WHERE}, or in the study's own files."
    )


def _named(study: Study, fields: tuple[str, ...], base: str, plain: set[str]) -> list[str]:
    """The names that trials of a study have, but the plain ones."""
    return [str(name) for name in study.values_of(fields, base) if str(name) not in plain]
