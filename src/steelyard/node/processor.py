"""CPU time from the kernel, of the whole machine and of single processes; when a process started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""First columns of the line `cpu` in /proc/stat, see proc_stat(5)."""
BUSY = ("user", "nice", "system", "irq", "softirq")
INTERRUPTS = ("irq", "softirq")


@dataclass(frozen=True)
class MachineTime:
    """Seconds over all cores since boot."""

    busy_s: float
    steal_s: float
    total_s: float
    interrupt_s: float = 0.0
    """Part of `busy_s`: interrupts, which many kernels charge to no process."""

    def since(self, before: MachineTime) -> MachineTime:
        """The difference to `before`."""
        return MachineTime(
            self.busy_s - before.busy_s,
            self.steal_s - before.steal_s,
            self.total_s - before.total_s,
            self.interrupt_s - before.interrupt_s,
        )


def machine_time(stat: str | None = None) -> MachineTime:
    """Read the current time; `stat` is the text of /proc/stat."""
    text = Path("/proc/stat").read_text(encoding="utf-8") if stat is None else stat
    ticks = os.sysconf("SC_CLK_TCK")
    columns = [int(field) / ticks for field in text.split("\n", 1)[0].split()[1 : 1 + len(FIELDS)]]
    seconds = dict(zip(FIELDS, columns, strict=False))
    interrupt_s = sum(seconds[name] for name in INTERRUPTS)
    return MachineTime(sum(seconds[name] for name in BUSY), seconds.get("steal", 0.0), sum(columns), interrupt_s)


def process_time_s(pid: int) -> float:
    """User and system seconds of a process and of the children that it has waited for; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    return time_of_stat_s(text)


def time_of_stat_s(text: str) -> float:
    """The same from the text of /proc/PID/stat, in ticks of this machine: 100 per second on every Linux of today."""
    # Fields 14 to 17 of proc_pid_stat(5); the name in parentheses may hold anything.
    fields = text.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot, None if there is none or it is a zombie. A killed process
    whose first thread is a zombie still exists, with its ports, until its other threads have ended. See
    proc_pid_stat(5)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything; field 3 (state) follows the last ")", field 20 is the number of
    # threads, field 22 the start time.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} and int(fields[17]) <= 1 else int(fields[19])


def most_resident_bytes(pid: int) -> int:
    """Peak resident memory of a process (VmHWM); 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    high_water = next((line for line in text.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(high_water.split()[1]) * 1024


@dataclass(frozen=True)
class RunningProgram:
    """A process at one moment."""

    name: str
    used_s: float
    """Its own user and system seconds, without its children's."""
    parent: int = 0
    """Id of the process that started it; 0 if unknown."""


def census() -> dict[tuple[int, int], RunningProgram]:
    """All visible processes, by id and start time in ticks."""
    programs = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        used_s = (int(fields[11]) + int(fields[12])) / ticks
        programs[int(entry), int(fields[19])] = RunningProgram(head.partition("(")[2], used_s, int(fields[1]))
    return programs


def busiest(
    before: Mapping[tuple[int, int], RunningProgram],
    after: Mapping[tuple[int, int], RunningProgram],
    elapsed_s: float,
    ours: Callable[[int], bool],
) -> list[tuple[str, float]]:
    """Programs and the number of cores that they kept busy between two censuses, the busiest first, excluding ours and
    processes that began and ended in between."""
    cores: dict[str, float] = {}
    for who, program in after.items():
        used_s = program.used_s - (before[who].used_s if who in before else 0.0)
        if used_s > 0 and elapsed_s > 0 and not ours(who[0]):
            cores[program.name] = cores.get(program.name, 0.0) + used_s / elapsed_s
    return sorted(cores.items(), key=lambda one: -one[1])


def has_variable(pid: int, name: str, value: str) -> bool:
    """Whether a process has an environment variable with that value; False if unreadable."""
    try:
        return f"{name}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
