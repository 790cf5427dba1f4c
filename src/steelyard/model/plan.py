"""Plan of a study: every trial in order, fixed before anything is started."""

from __future__ import annotations

from steelyard.model.named_level import Level
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value


class PlannedTrial(Value):
    """One planned trial. Its id depends only on the treatment's complete settings and the replicate numbers, so that an
    extended study keeps its existing trials."""

    id: str
    """`<12 hex of the settings' SHA-256>-s<start replicate>-t<trial replicate>`, both from 1."""
    position: int
    """Place in the overall order, from 0."""
    block: int
    """Number of the block, from 1."""
    start: str
    """Planned start (whole plot): trials with the same value share one start of a cluster, e.g. `b01-3f2a91c07d11`."""
    start_replicate: int
    """Which start of these hard-to-change levels, from 1."""
    replicate: int
    """Which trial of this treatment within the start, from 1."""
    treatment: dict[str, Level]
    """Factor to level."""
    hard: tuple[str, ...]
    """The factors of the treatment that need a new cluster."""
    settings: TrialSettings
    """Complete settings: site, system, workload, load, data with the treatment's levels applied."""
    seed: int
    """Seed of the operation stream: the same for the same (start replicate, trial replicate), so that treatments are
    compared on common random numbers."""
    control: bool = False


class Plan(Value):
    """An ordered list of trials."""

    study: str
    seed: int
    factors: dict[str, tuple[Level, ...]]
    hard: tuple[str, ...]
    trials: tuple[PlannedTrial, ...]

    @property
    def blocks(self) -> int:
        """Number of its blocks."""
        return max((trial.block for trial in self.trials), default=0)
