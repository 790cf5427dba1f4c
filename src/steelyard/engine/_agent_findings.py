"""Findings of `doctor` about engine `agent`: the program, and its capacity on this machine."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from steelyard.format import data_size
from steelyard.model.errors import SteelyardError
from steelyard.model.finding import Finding, failed, judged
from steelyard.node import agent, calibration, machine_facts
from steelyard.node.command import run
from steelyard.node.folders import state_folder
from steelyard.wire.order import CQL

VERSION_TIMEOUT_S = 10.0


async def of_this_machine() -> list[Finding]:
    """The program and its last calibration. Drives no load."""
    return [await _agent(), *_calibrated()]


async def _agent() -> Finding:
    try:
        program = agent.find()
        done = await run(None, [str(program), "--version"], timeout_s=VERSION_TIMEOUT_S)
    except SteelyardError as error:
        return failed("agent", error)
    return Finding(name="agent", state="good", found=f"{done.stdout.decode(errors='replace').strip()}, {program}")


def _calibrated() -> list[Finding]:
    """Capability of the load engine here, by the last calibration over each protocol."""
    kept = calibration.all_in(state_folder()) or {CQL: calibration.path_in(state_folder(), CQL)}
    return [_by(protocol, where) for protocol, where in kept.items()]


def _by(protocol: str, where: Path) -> Finding:
    again = calibration.command(protocol)
    hint = f"run {again} (20 s): without it, the generator's limit can be mistaken for the system's"
    try:
        ceilings = calibration.read(where)
    except SteelyardError as error:
        return Finding(name="load engine", state="poor", found=error.message, hint=hint)
    if ceilings is None:
        return Finding(name="load engine", state="poor", found="never calibrated on this machine", hint=hint)
    peaks = ", ".join(
        f"{max(one.per_s for one in ceilings.ceilings if one.kind == kind):,.0f} {kind}s of 1 KB"
        for kind in dict.fromkeys(one.kind for one in ceilings.ceilings)
    )
    text = (
        f"{protocol}: {peaks} per second for each worker at most, "
        f"{ceilings.slip.pacing_ms_p99 * 1000:,.0f} us late at p99, {data_size(ceilings.memory_bytes)}; "
        f"{datetime.fromtimestamp(ceilings.made_s):%Y-%m-%d %H:%M}"
    )
    try:
        why = calibration.stale(ceilings, machine_facts.facts(), calibration.fingerprint(agent.find()))
    except (SteelyardError, OSError) as error:
        why = str(error)
    if why:
        return Finding(name="load engine", state="poor", found=f"{text}; {why}", hint=hint)
    return judged(
        "load engine", "; ".join([text, *calibration.doubts(ceilings)]), not calibration.doubts(ceilings), hint
    )
