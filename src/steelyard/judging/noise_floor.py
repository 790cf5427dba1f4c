"""Stored noise floor of a site: mean squares of identical systems, and the conditions they were measured under.

It keeps mean squares of logarithms with their degrees of freedom, not a threshold: from them, the analysis computes the
floor for a comparison with its own numbers of starts and trials. It also keeps the conditions, so that a floor from
another machine, system or kind of load is never used. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.model.file_format import FileFormat
from steelyard.model.machine_identity import difference, identity
from steelyard.model.plausible import Moment
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value

STUDY = "studies/noise-floor.toml"
"""The shipped study that measures a noise floor."""
NONE = f"this machine's noise floor has not been measured; `steelyard run {STUDY}` measures it"
ALIKE = ("site", "system", "engine", "loop", "nodes")
"""Properties that a treatment of the study must share with a floor for the floor to be valid."""
MOST_TOLD = 3
SCALARS = (str, int, float, bool)


class Spread(Value):
    """One response of identical systems: mean squares of its logarithm between starts and between trials of a start."""

    response: str
    starts: int
    trials: int
    between_mean_square: float | None = None
    """Mean square of the starts' means, times the number of trials per start; None with one start."""
    between_degrees: int = 0
    in_block_mean_square: float | None = None
    """The same of starts about the mean of their block; None if no block has two."""
    in_block_degrees: int = 0
    within_mean_square: float | None = None
    """Mean square of the trials about their start's mean; None if no start has two trials."""
    within_degrees: int = 0
    trials_a_start: float
    """(N - sum of n_i^2 / N) / (starts - 1): the number of trials per start if all starts have equally many."""


class Circumstances(Value):
    """Conditions under which a floor was measured."""

    machines: tuple[dict[str, str], ...]
    """The distinct machines of the lease: processor, cores, kernel, architecture."""
    site: str
    system: str
    engine: str
    loop: Literal["closed", "open"]
    nodes: int
    warmed_up: bool
    """Whether the servers were warmed up before the first trial of each start."""
    settings: dict[str, str]
    """All other settings by dotted name: they may differ, and differences are reported."""


class KeptFloor(Value):
    """The noise floor that a study of identical systems measured."""

    format: FileFormat = 1
    study: str
    made_s: Moment
    """End of its last trial, seconds since the epoch."""
    pairs: int
    """Number of blocks with a start for each of the two labels."""
    holds_for: Circumstances
    spreads: tuple[Spread, ...]


class FoundFloor(Value):
    """The noise floor for a study, or the reason why there is none."""

    floor: KeptFloor | None = None
    why: str = NONE


def circumstances(
    settings: TrialSettings, machines: Sequence[Mapping[str, str]], *, warmed_up: bool = False
) -> Circumstances:
    """Circumstances from a trial's complete settings, on machines with these facts."""
    flat = dict(_flat(settings))
    for own in ("site.name", "site.nodes", "system.name", "load.engine"):
        flat.pop(own, None)
    return Circumstances(
        machines=different(machines), site=settings.site.name, system=settings.system.name, engine=settings.engine,
        loop="open" if settings.load.is_open else "closed", nodes=settings.site.nodes, warmed_up=warmed_up,
        settings=flat,
    )  # fmt: skip


def different(machines: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], ...]:
    """The distinct identities of machines, sorted."""
    identities = {tuple(identity(one).items()) for one in machines}
    return tuple(dict(one) for one in sorted(identities))


def _flat(settings: TrialSettings) -> list[tuple[str, str]]:
    """Settings as text by dotted name; unset values and lists as written."""
    return [
        (name, str(value) if isinstance(value, SCALARS) else "" if value is None else repr(value))
        for name, value in settings.leaves()
    ]


def mismatch(floor: KeptFloor, of: Sequence[Circumstances]) -> str:
    """Reason why a floor is not valid for a study in these circumstances; empty if it is.

    The machines must be the same; servers must have been warmed up for both or for none; one treatment of the study
    must have the same site, system, engine, kind of load and number of nodes.
    """
    held = floor.holds_for
    if not of:
        return "the study has no treatment"
    here = of[0].machines
    if here != held.machines:
        if len(here) != len(held.machines):
            return f"it was measured on {len(held.machines)} kinds of machines, this study has {len(here)}"
        differing = (difference(then, now) for then, now in zip(held.machines, here, strict=True))
        return f"it was measured on another machine: {next(one for one in differing if one)}"
    return _other_servers(held, of) or _not_alike(held, of)


def _other_servers(held: Circumstances, of: Sequence[Circumstances]) -> str:
    """Why a floor of cold servers says nothing of warm ones, nor the other way round."""
    if held.warmed_up in {one.warmed_up for one in of}:
        return ""
    servers = ("servers that had not been warmed up", "warmed-up servers")
    return f"it was measured on {servers[held.warmed_up]}, this study on {servers[not held.warmed_up]}"


def _not_alike(held: Circumstances, of: Sequence[Circumstances]) -> str:
    """Values of `ALIKE` that no treatment has."""
    for name in ALIKE:
        was, known = getattr(held, name), sorted({getattr(one, name) for one in of})
        if was not in known:
            return f"it was measured with {name} {was}, this study has {' and '.join(str(one) for one in known)}"
    if not any(all(getattr(one, name) == getattr(held, name) for name in ALIKE) for one in of):
        return f"no treatment of this study has all of {', '.join(f'{name} {getattr(held, name)}' for name in ALIKE)}"
    return ""


def unlike(floor: KeptFloor, of: Sequence[Circumstances]) -> tuple[str, ...]:
    """Settings of the floor's study that no treatment of this one has: `load.operations 1000`."""
    held = floor.holds_for.settings
    seen: dict[str, set[str]] = {}
    for treatment in of:
        for name, value in treatment.settings.items():
            seen.setdefault(name, set()).add(value)
    return tuple(
        f"{name} {value or 'unset'}" for name, value in held.items() if name in seen and value not in seen[name]
    )


def in_words(differences: Sequence[str]) -> str:
    """The first entries of `unlike`, and how many more there are."""
    more = len(differences) - MOST_TOLD
    return ", ".join(differences[:MOST_TOLD]) + (f" and {more} more" if more > 0 else "")
