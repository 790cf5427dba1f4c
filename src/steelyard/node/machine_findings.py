"""Findings of `doctor` about this machine itself, whatever a study uses: processor, memory, disks, clock."""

from __future__ import annotations

import os
import shutil
import time

from steelyard.format import data_size
from steelyard.model.finding import Finding, judged
from steelyard.node import machine_facts
from steelyard.node.folders import cache_folder, state_folder

STEAL_WINDOW_S = 0.5
STEAL_LIMIT_FRACTION = 0.1
"""As the default limit of a trial's verdict."""
LEAST_DISK_GB = 5.0
LEAST_MEMORY_MB = 1500
GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter", "timebase", "tod")
"""Clock sources that are read without leaving user space, or nearly so; the others cost microseconds a reading."""


def of_this_machine() -> list[Finding]:
    """Every finding. Watches the processor for STEAL_WINDOW_S."""
    return [*_processor(), *_memory_and_disk(), *_clock()]


def _processor() -> list[Finding]:
    facts = machine_facts.facts()
    cores = int(facts["cores"])
    load = os.getloadavg()[0]
    begun = machine_facts.read("/proc/stat")
    time.sleep(STEAL_WINDOW_S)
    steal = _steal_between(begun, machine_facts.read("/proc/stat"))
    shared = f", {facts['virtualisation']}" if "virtualisation" in facts else ""
    findings = [judged("processor", f"{facts['cpu_model']}, {cores} cores{shared}", cores >= 2, "nodes share one core")]
    if governor := machine_facts.governor():
        hint = "as root: cpupower frequency-set -g performance"
        findings.append(judged("frequency", f"governor {governor}", governor == "performance", hint))
    stolen = f"{steal:.1%} stolen by other guests during {STEAL_WINDOW_S:g} s"
    findings.append(
        judged("steal", stolen, steal <= STEAL_LIMIT_FRACTION, "measure at another hour, or on other hardware")
    )
    busy = f"load average {load:.1f} over a minute on {cores} cores"
    findings.append(judged("other load", busy, load < cores / 2, "stop other programs; they affect every number"))
    return findings


def _steal_between(before: str, after: str) -> float:
    first, second = (
        [int(field) for field in text.split("\n", 1)[0].split()[1 : 1 + len(machine_facts.CPU_FIELDS)]]
        for text in (before, after)
    )
    change = [late - early for early, late in zip(first, second, strict=True)]
    return change[machine_facts.CPU_FIELDS.index("steal")] / total if (total := sum(change)) else 0.0


def _size(mib: int) -> str:
    return data_size(mib * 2**20)


def _memory_and_disk() -> list[Finding]:
    memory = machine_facts.memory_mb(machine_facts.read("/proc/meminfo"))
    available, total, swap = (memory.get(key, 0) for key in ("MemAvailable", "MemTotal", "SwapTotal"))
    findings = [
        judged(
            "memory",
            f"{_size(available)} available of {_size(total)}" + (f", {_size(swap)} of swap" if swap else ""),
            available >= LEAST_MEMORY_MB,
            f"three small Cassandra nodes and the laboratory need {_size(LEAST_MEMORY_MB)}",
        )
    ]
    for name, folder in (("state", state_folder()), ("cache", cache_folder())):
        there = next(place for place in (folder, *folder.parents) if place.exists())
        free_gb = shutil.disk_usage(there).free / 1e9
        writable = os.access(there, os.W_OK)
        text = f"{folder}: {free_gb:.1f} GB free" + ("" if writable else ", not writable")
        hint = f"set STEELYARD_{name.upper()} to a folder on a larger disk"
        findings.append(judged(name, text, writable and free_gb >= LEAST_DISK_GB, hint, bad=not writable))
    return findings


def _clock() -> list[Finding]:
    source = machine_facts.facts().get("clock_source", "unknown")
    hint = "/sys/devices/system/clocksource/clocksource0 lists others; this one makes every clock reading slow"
    return [judged("clock", source, source in GOOD_CLOCKS, hint)]
