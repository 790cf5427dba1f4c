"""Stored calibration of this machine's load engine, and whether it is still valid."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from steelyard.atomic_file import replace_file
from steelyard.model.calibration import Calibration
from steelyard.model.errors import SteelyardError
from steelyard.model.file_format import refusal
from steelyard.model.machine_identity import difference

FINGERPRINT_DIGITS = 12
QUIET_FRACTION = 0.1
"""More background load or steal than this share of all cores makes the figures worth little."""


def path_in(state: Path, protocol: str) -> Path:
    """Path of a protocol's file; it is in the state folder because it is a measurement, not a copy."""
    return state / f"calibration-{protocol}.json"


def all_in(state: Path) -> dict[str, Path]:
    """The files that there are, by protocol."""
    return {where.stem.removeprefix("calibration-"): where for where in sorted(state.glob("calibration-*.json"))}


def command(protocol: str) -> str:
    """The command that measures it."""
    return f"`steelyard calibrate --protocol {protocol}`"


def read(where: Path) -> Calibration | None:
    """The last calibration; None if there is none. Raises SteelyardError if it is in another format, or damaged."""
    try:
        return Calibration.model_validate_json(where.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        what = refusal(error) or f"cannot be read ({type(error).__name__})"
        raise SteelyardError(f"the calibration {where} {what}", "run `steelyard calibrate` again") from error


def write(where: Path, calibration: Calibration) -> None:
    """Replace the stored calibration. Raises SteelyardError if it cannot be written."""
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        replace_file(where, calibration.model_dump_json(indent=1) + "\n")
    except OSError as error:
        message = f"the calibration cannot be kept at {where}: {error.strerror}"
        raise SteelyardError(message, "set STEELYARD_STATE to a writable folder") from error


def fingerprint(program: Path) -> str:
    """First digits of the SHA-256 of the agent program; each build is a different generator."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:FINGERPRINT_DIGITS]


def stale(calibration: Calibration, machine: Mapping[str, str], agent_fingerprint: str) -> str:
    """Reason why a calibration is not valid for this machine and this agent; empty if it is."""
    if differing := difference(calibration.machine, machine):
        return f"it was made with {differing}"
    if not calibration.agent.endswith(agent_fingerprint):
        return f"it was made with another build of the agent ({calibration.agent})"
    return ""


def doubts(calibration: Calibration) -> list[str]:
    """Circumstances that make the figures less reliable."""
    problems = []
    if not calibration.optimised:
        problems.append("the agent was built without optimisation: `make setup` builds the one to measure with")
    if calibration.background_cpu_fraction > QUIET_FRACTION:
        problems.append(
            f"other programs took {calibration.background_cpu_fraction:.0%} of all cores: stop them and calibrate again"
        )
    if calibration.steal_fraction > QUIET_FRACTION:
        problems.append(f"other guests took {calibration.steal_fraction:.0%} of all cores: calibrate at another hour")
    return problems
