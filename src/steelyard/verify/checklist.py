"""Findings of verification, and the number of checks made, so that an absence of findings means something."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Literal

from pydantic import Field

from steelyard.model.value import Value
from steelyard.store.sealed import RESTORE_EITHER

Weight = Literal["difference", "remark"]

CHECKS: dict[str, str] = {
    "format": "a file is there, readable, and of the format and columns that it should have",
    "written": "the study, its file and its plan are as a session wrote them",
    "checksum": "a file has the SHA-256 that its trial's record says, and the record names every file",
    "record": "a trial's record has the SHA-256 that the journal says",
    "machine": "all trials of a block were measured on one machine",
    "id": "a trial's id follows from its settings and replicate numbers",
    "plan": "a trial has the treatment, settings, seed and start that the plan gives it",
    "until": "each decision of the stopping rule follows from the trials of its blocks; none comes after the end",
    "floor": "the noise floor is the one that the laboratory copied into the store",
    "journal": "what the journal says was sealed is there, with that verdict, and the other way round",
    "response": "a response follows from the raw intervals, to the last digit",
    "measure": "a measure follows from samples, activities and intervals, a covariate from facts and links",
    "relation": "a response that the intervals do not hold agrees with those that they do",
    "verdict": "outcome and reasons follow from raw intervals, numbers and thresholds",
    "capacity": "a capacity is the one that its trial measured, and follows from that trial's intervals",
    "search": "a window of a search follows from its responses, its rate from the windows before, the result from all",
    "policy": "a scaling policy's points follow from samples and intervals, its desired sizes from points and nodes, "
    "activities from sizes, nodes from activities",
    "report": "a number of a report is the one that follows from the trials",
}
"""Kind of check to the statement that holds if there is no finding."""


RECOMPUTED: Final = frozenset(
    {"id", "until", "response", "relation", "verdict", "capacity", "measure", "search", "policy", "report"}
)
"""Kinds of checks that compare a value with one that was computed again; others compare with what should be there."""
MAKE_AGAIN: Final = "make it again with `steelyard report`"
OR_AGAIN: Final = "or remove the trial's folder: the next `steelyard run` measures the trial again"
HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(("format", "checksum"), f"restore the file from a copy, {OR_AGAIN}"),
    **dict.fromkeys(
        ("id", "plan", "response", "relation", "verdict", "capacity", "measure", "search", "policy"),
        f"restore the record, {OR_AGAIN}",
    ),
    "written": "restore the file from a copy, or run the study again: it is rewritten from the study file",
    "record": RESTORE_EITHER,
    "until": "restore the journal, or the trials of the blocks, from a copy",
    "floor": "restore it from a copy; the next `steelyard run` rewrites it",
    "journal": "restore it from a copy; otherwise the next `steelyard run` corrects a changed line, and measures "
    "trials that are missing",
    "machine": "leave the block out, or measure it again on one machine: in it, machine and level are confounded",
    "report": MAKE_AGAIN,
}
"""Kind of check to what to do about a difference."""


class VerificationFinding(Value):
    """One value that does not match."""

    kind: str
    weight: Weight = "difference"
    """A remark is not a difference: verification cannot judge it, or it also occurs in sound stores."""
    file: str
    """Path relative to the study's folder."""
    what: str
    read: str
    recomputed: str = ""
    """The expected value; empty if it is not known."""

    def words(self) -> str:
        """The finding as a line."""
        if not self.recomputed:
            return f"{self.file}: {self.what}: {self.read}"
        if self.kind in RECOMPUTED:
            return f"{self.file}: {self.what}: read {self.read}, recomputed {self.recomputed}"
        return f"{self.file}: {self.what}: expected {self.recomputed}, found {self.read}"


class Verification(Value):
    """Result of the verification of one store."""

    store: str
    trials: int
    made: dict[str, int]
    """Kind of check to number of checks made."""
    findings: tuple[VerificationFinding, ...]
    not_checked: dict[str, int] = Field(default_factory=dict)
    """Reason why checks could not be made, to their number."""

    @property
    def sound(self) -> bool:
        """Whether nothing differs."""
        return not any(one.weight == "difference" for one in self.findings)


class Book:
    """Collects checks while they are made."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.not_checked: Counter[str] = Counter()
        self.findings: list[VerificationFinding] = []

    def check(self, kind: str, holds: bool, file: str, what: str, read: Any, recomputed: Any = "") -> bool:
        """Enter one check; a finding if it does not hold. Returns whether it holds."""
        self.made[kind] += 1
        if not holds:
            self.findings.append(
                VerificationFinding(kind=kind, file=file, what=what, read=_shown(read), recomputed=_shown(recomputed))
            )
        return holds

    def equal(self, kind: str, file: str, what: str, read: Any, recomputed: Any) -> bool:
        """Enter a check that two values are exactly equal."""
        return self.check(kind, read == recomputed, file, what, read, recomputed)

    def remark(self, kind: str, file: str, what: str, read: Any) -> None:
        """Enter something that is not a difference."""
        self.made[kind] += 1
        self.findings.append(VerificationFinding(kind=kind, weight="remark", file=file, what=what, read=_shown(read)))

    @property
    def differences(self) -> int:
        """Number of findings that are not remarks."""
        return sum(finding.weight == "difference" for finding in self.findings)

    def take(self, other: Book, *, findings: bool = True) -> None:
        """Enter the checks of another book, and its findings if they are wanted."""
        self.made.update(other.made)
        self.not_checked.update(other.not_checked)
        self.findings += other.findings if findings else ()

    def causes_first(self) -> tuple[VerificationFinding, ...]:
        """Findings in the order in which they are to be read: differences, then remarks, the report's last of each."""
        return tuple(sorted(self.findings, key=lambda one: (one.weight != "difference", one.kind == "report")))

    def skip(self, why: str, times: int = 1) -> None:
        """Enter a check that cannot be made, and why."""
        self.not_checked[why] += times


def _shown(value: Any) -> str:
    return "no value" if value is None else value if isinstance(value, str) else repr(value)
