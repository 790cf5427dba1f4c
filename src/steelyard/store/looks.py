"""Looks at a study, from its journal: when its plan was finished, and finished again after it had been extended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from steelyard.events.kept import SessionBegan, SessionEnded, TrialSealed
from steelyard.store.journal import Entry


def looks(entries: Iterable[Entry]) -> tuple[float, ...]:
    """Times of the looks, seconds since the epoch: each is the end of a finished plan that has more starts or trials of
    a treatment than the finished plan before it. The last is infinite where trials were added and the plan is not
    finished again. Other levels than before, and trials that were measured again, are no further look.
    """
    times: list[float] = []
    sealed: set[str] = set()
    at_look: Counter[str] = Counter()
    planned, now = math.inf, 0.0
    for entry in entries:
        now = entry.t_s or now
        match entry.event:
            case TrialSealed(trial=trial):
                sealed.add(trial)
                continue
            case SessionEnded(missing=0):
                pass
            case SessionBegan(total=total):
                # A session that was stopped when all was measured has no end in the journal.
                finished, planned = len(sealed) >= planned, total
                if not finished:
                    continue
            case _:
                continue
        if sealed and (not times or _grown(sealed, at_look)):
            times.append(now)
            at_look = _replicates(sealed)
    return (*times, math.inf) if times and _grown(sealed, at_look) else tuple(times)


def number_of(*stores: tuple[float, ...]) -> int:
    """Which look the newest is, from 1, by the looks at each store. Of two stores those count that came after both had
    been finished: a baseline that was extended before a build was measured gives a first look at that build."""
    if not all(stores):
        return 1
    first = max(times[0] for times in stores)
    return 1 + sum(time > first for times in stores for time in times)


def _replicates(sealed: Iterable[str]) -> Counter[str]:
    """Settings of a treatment to the number of its trials: a trial's id begins with the hash of its settings."""
    return Counter(trial.partition("-")[0] for trial in sealed)


def _grown(sealed: Iterable[str], before: Counter[str]) -> bool:
    now = _replicates(sealed)
    return any(now[settings] > trials for settings, trials in before.items())
