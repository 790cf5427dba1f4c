"""Trials that were measured again: what the journal knows of sealed attempts that other measurements replaced.

A store has only the newest form of an attempt. That its trial was sealed before, perhaps with another outcome, was
removed or set aside, and was measured again, is in the journal alone; all that shows numbers of the store says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.events.kept import FolderMissed, FolderSetAside, SealCorrected, TrialSealed
from steelyard.model.value import Value
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.store import layout
from steelyard.store.journal import Entry

REPLACED = "replaced"
REMOVED = "removed"


class MeasuredAgain(Value):
    """One sealed attempt that another measurement of the same attempt replaced."""

    folder: str
    """Its folder's name in `trials`: the trial's id, with the attempt."""
    line: int
    """Line of the journal on which the former measurement was sealed."""
    outcome: str
    reasons: tuple[str, ...] = ()
    """Kinds of reasons of the former measurement, in words."""
    fate: str
    """Fate of the former measurement: `removed`, `set aside as set-aside/NAME`, or `replaced`."""
    line_now: int
    """Line of the journal on which the present measurement was sealed."""
    outcome_now: str

    @property
    def former(self) -> str:
        """Outcome of the former measurement: `invalid (the system under test failed)`."""
        reasons = ", ".join(self.reasons)
        return f"{self.outcome} ({reasons})" if reasons else self.outcome

    @property
    def sentence(self) -> str:
        """The whole story, without a full stop."""
        return (
            f"trial {self.folder} was sealed as {self.former}, was {self.fate}, and was measured again: "
            f"{self.outcome_now} (lines {self.line} and {self.line_now} of {layout.EVENTS})"
        )


def measured_again(entries: Iterable[Entry]) -> tuple[MeasuredAgain, ...]:
    """Every replaced measurement, in the order of the present ones. A line that stands in the journal twice is no
    measurement."""
    newest: dict[str, tuple[int, TrialSealed]] = {}
    fates: dict[str, str] = {}
    replaced: list[MeasuredAgain] = []
    for entry in entries:
        match entry.event:
            case FolderMissed(folder=folder):
                fates[folder] = REMOVED
            case FolderSetAside(folder=folder, to=to):
                fates[folder] = f"set aside as {to}"
            case SealCorrected(instead_of=former) as corrected:
                event = corrected.sealed()
                newest.pop(former, None)
                newest[layout.trial_folder(event.trial, event.attempt)] = entry.number, event
            case TrialSealed() as event:
                folder = layout.trial_folder(event.trial, event.attempt)
                before = newest.get(folder)
                fate = fates.pop(folder, "")
                if before is not None and (fate or before[1] != event):
                    replaced.append(_replaced(folder, before, fate or REPLACED, (entry.number, event)))
                newest[folder] = entry.number, event
    return tuple(replaced)


def _replaced(folder: str, before: tuple[int, TrialSealed], fate: str, now: tuple[int, TrialSealed]) -> MeasuredAgain:
    return MeasuredAgain(
        folder=folder,
        line=before[0],
        outcome=before[1].outcome,
        reasons=tuple(reason_words(name) for name in before[1].reasons),
        fate=fate,
        line_now=now[0],
        outcome_now=now[1].outcome,
    )


def reason_words(name: str) -> str:
    """A kind of reason, by its name in the journal, in the words of a record."""
    kind = ReasonKind.__members__.get(name)
    return name.lower().replace("_", " ") if kind is None else kind.value
