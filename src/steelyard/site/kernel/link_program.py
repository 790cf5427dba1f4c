"""Link program of a lease: `steelyard-agent link`, which is started, listened to and ended.

It carries the lease's mark, and its devices go with it. A thread reads the counters that it prints, so that a trial
knows what was moved while its load ran, and how late.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import queue
import subprocess
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import IO, Any, NamedTuple

from steelyard.leases.steps import Step
from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.model.link import DEFAULT_MTU, Lateness, LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.node import agent
from steelyard.node.processor import RunningProgram
from steelyard.node.tasks import in_a_thread
from steelyard.site.kernel import network
from steelyard.site.kernel.network import INTERFACE, PREFIX_LENGTH, Member

READY_TIMEOUT_S = 20.0
COUNTERS_EVERY_S = 0.5
LATEST_COUNTERS_S = 3.0
"""Longest wait for them."""
REFUSED = 2
"""Exit code for a configuration that it refuses."""
END_TIMEOUT_S = 3.0
LONGEST_LINE_BYTES = 1 << 16
STDERR_TAIL_CHARS = 500
PROGRAM = "steelyard-agent link"
CONFIG_FILE, LOG_FILE = "link.json", "link.log"


class Counters(NamedTuple):
    """One line of counters: everything since the link was ready, but for the most lateness."""

    read_s: float
    """When the line was read, seconds since the epoch."""
    t_s: float
    frames: int
    delivered: int
    dropped: int
    lost: int
    unread: int
    late_ms: float
    """Lateness of all deliveries together."""
    late_ms_max: float
    """The most since the previous line."""
    paused_s: float
    """Time for which the program stood still."""
    cpu_s: float


class LinkProgram:
    """`steelyard-agent link`: one process of this machine, outside the nodes' limits."""

    def __init__(
        self, identity: str, members: Sequence[Member], link: LinkChoice, folder: Path, environment: Mapping[str, str],
        seed: int, dilation: float = 1.0,
    ) -> None:  # fmt: skip
        """`folder`: exists when the steps are taken, and holds configuration and log; `environment`: the lease's
        mark."""
        self._identity, self._members, self._link = identity, members, link
        self._folder, self._environment, self._seed = folder, environment, seed
        self._dilation = dilation
        self._log = folder / LOG_FILE
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._counters: list[Counters] = []
        self._priority = ""

    @property
    def how(self) -> str:
        """The link, and the program."""
        return f"{self._link.name}: {PROGRAM}"

    @property
    def priority(self) -> str:
        """Its scheduling: `real time`, or `ordinary` with the reason; empty before it is ready."""
        return self._priority

    def steps(self) -> Sequence[Step]:
        """Loopback interfaces, then the program, which makes all others."""
        return [Step("loopbacks", self._loopbacks), Step("link", self._start)]

    def failure(self) -> str | None:
        """Ending of the program, or None."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"the link program exited with code {self._process.returncode}{_tail(self._log)}"

    def process_ids(self) -> frozenset[int]:
        """The program, while it runs."""
        running = self._process is not None and self._process.poll() is None
        return frozenset({self._process.pid}) if running and self._process is not None else frozenset()

    async def moved(self, begun_s: float, ended_s: float) -> MovedFrames:
        """Traffic between two times (seconds since the epoch), with up to COUNTERS_EVERY_S at both ends. Waits
        for the counters of the end. Forgets what was before."""
        deadline_s = time.monotonic() + LATEST_COUNTERS_S
        while not (self._counters and self._counters[-1].read_s >= ended_s) and time.monotonic() < deadline_s:
            if self.failure() is not None:
                break
            await asyncio.sleep(COUNTERS_EVERY_S / 10)
        counters = self._counters.copy()
        first = max(0, bisect_right(counters, begun_s, key=_read_s) - 1)
        del self._counters[:first]
        return moved_between(counters[first:], begun_s, ended_s)

    def late(self, targets: Sequence[str], peers: Sequence[str], lateness: Lateness) -> None:
        """Deliver frames between these members late for a while, by their names. Raises SiteError if it has ended."""
        ways = {"to": lateness.direction != "from", "from": lateness.direction != "to"}
        times = {"delay_ms": lateness.delay_ms, "jitter_ms": lateness.jitter_ms, "for_s": lateness.for_s}
        word = json.dumps({"targets": list(targets), "peers": list(peers), **ways, **times})
        try:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()
        except (AssertionError, OSError) as error:
            raise SiteError(self.failure() or f"the link program takes no words: {error}") from error

    async def end(self) -> None:
        """Close its input, which ends it; kill it if that does not. Idempotent."""
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is not None:
            await in_a_thread(functools.partial(_ended, process, reader))

    async def _loopbacks(self) -> None:
        for member in self._members:
            await network.batch(self._identity, network.namespace(self._identity, member.name), ["link set lo up"])

    async def _start(self) -> None:
        config = self._folder / CONFIG_FILE
        content = program_config(self._identity, self._members, self._link, self._seed, self._dilation)
        config.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        argv = [str(agent.find()), "link", "--config", str(config), "--every-s", str(COUNTERS_EVERY_S)]
        self._process = _started(argv, self._log, self._environment)
        first: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        arguments = (self._process.stdout, first, self._counters)
        self._reader = threading.Thread(target=_read_lines, args=arguments, name="link counters", daemon=True)
        self._reader.start()
        self._priority = _priority(await in_a_thread(functools.partial(_first_line, first, READY_TIMEOUT_S)))
        if not self._priority:
            raise self._not_ready(await in_a_thread(functools.partial(_exit_code, self._process)))

    def _not_ready(self, exit_code: int | None) -> SiteError:
        """Error for a program that refused its configuration, ended, or was silent for too long (no exit code)."""
        name, said_last = f"link {self._link.name}: the link program", _tail(self._log)
        hint = "run `steelyard doctor` to see whether this machine has TAP devices"
        if exit_code == REFUSED:
            return LastingSiteError(f"{name} refused its configuration{said_last}", "change section link of the study")
        if exit_code is not None:
            return SiteError(f"{name} exited with code {exit_code} before it was ready{said_last}", hint)
        return SiteError(f"{name} was not ready within {READY_TIMEOUT_S:g} s{said_last}", hint)


def program_config(
    identity: str, members: Sequence[Member], link: LinkChoice, seed: int, dilation: float = 1.0
) -> dict[str, Any]:
    """Configuration of `steelyard-agent link`. `dilation`: rates are divided by it, times multiplied."""
    length = {} if link.queue_frames is None else {"queue_frames": link.queue_frames}
    chosen = link.model_dump(mode="json", include=set(MEDIUM_FIELDS[link.medium or "switched"]), exclude_none=True)
    kind = "802.11" if link.medium == "802.11" else "point-to-point"
    wired = link.load_nodes == "wired"
    return {
        "seed": seed,
        "dilation": dilation,
        "mtu": link.mtu or DEFAULT_MTU,
        "medium": {"kind": kind, **chosen, **length},
        "ports": [
            {
                "name": member.name,
                "namespace": str(network.path(network.namespace(identity, member.name))),
                "interface": INTERFACE,
                "address": f"{member.address}/{PREFIX_LENGTH}",
                "mac": hardware_address(member.address),
                "wired": wired and member.role == "load",
            }
            for member in members
        ],
    }


MEDIUM_FIELDS = {
    "switched": ("rate_mbit", "delay_ms", "jitter_ms", "loss_percent", "duplex"),
    "802.11": (
        "phy", "ack_rate_mbit", "rts_threshold_bytes", "aggregate", "retry_limit", "frame_error", "hidden",
    ),
}  # fmt: skip
"""Fields of a link that the link program takes as they are, by medium."""


def hardware_address(address: str) -> str:
    """A locally administered hardware address that follows from an IPv4 address: the same in every lease."""
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x00, *IPv4Address(address).packed))


def program_time_s(process_ids: frozenset[int], programs: Mapping[tuple[int, int], RunningProgram]) -> float:
    """Processor seconds of some processes in a census. Pure."""
    return sum(program.used_s for (pid, _), program in programs.items() if pid in process_ids)


def _started(argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A program of this machine, with its errors in a file. Not of the event loop: the program outlives the loop that
    started it, as the lease does."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            env={**os.environ, **environment},
        )  # fmt: skip


def _read_lines(output: IO[bytes], first: queue.SimpleQueue[bytes], counters: list[Counters]) -> None:
    """Read the output of a link program until it ends: its first line, then counters."""
    with output:
        first.put(output.readline(LONGEST_LINE_BYTES))
        counters.append(nothing_yet(time.time()))
        while line := output.readline(LONGEST_LINE_BYTES):
            if (parsed := parsed_counters(line, time.time())) is not None:
                counters.append(parsed)


def _first_line(lines: queue.SimpleQueue[bytes], timeout_s: float) -> bytes:
    """The first line of a program's output; empty when the program ends, or the time is over, before it."""
    try:
        return lines.get(timeout=timeout_s)
    except queue.Empty:
        return b""


def _priority(line: bytes) -> str:
    """Scheduling of a program that is ready, by its first line; empty if it is not."""
    content = _object(line)
    if content.get("ready") is not True:
        return ""
    if content.get("scheduling") == "fifo":
        return "real time"
    return f"ordinary ({content['scheduling_refused']})" if "scheduling_refused" in content else "ordinary"


def nothing_yet(read_s: float) -> Counters:
    """Counters of a program that has just become ready."""
    return Counters(
        read_s, t_s=0.0, frames=0, delivered=0, dropped=0, lost=0, unread=0, late_ms=0.0, late_ms_max=0.0, paused_s=0.0,
        cpu_s=0.0,
    )  # fmt: skip


def parsed_counters(line: bytes, read_s: float) -> Counters | None:
    """Counters of a line that was read at `read_s`; None for any other line, and for the last, whose most lateness is
    of the whole time. Pure."""
    content = _object(line)
    if content.get("ended") is True:
        return None
    try:
        return Counters(
            read_s=read_s,
            t_s=float(content["t_s"]),
            frames=int(content["frames"]),
            delivered=int(content["delivered"]),
            dropped=int(content["dropped"]),
            lost=int(content["lost"]),
            unread=int(content["kernel_dropped"]),
            late_ms=float(content["slip_us_mean"]) * int(content["delivered"]) / 1e3,
            late_ms_max=float(content["slip_us_max"]) / 1e3,
            paused_s=float(content["paused_s"]),
            cpu_s=float(content["cpu_s"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def moved_between(counters: Sequence[Counters], begun_s: float, ended_s: float) -> MovedFrames:
    """Traffic from the first counters to the first that were read at `ended_s` or later; where there are none,
    to the last, and afterwards the program stood still. With fewer than two it stood still all the time. Pure."""
    last = min(bisect_left(counters, ended_s, key=_read_s), len(counters) - 1)
    if last < 1:
        return _stood_still(max(0.0, ended_s - begun_s))
    before, after = counters[0], counters[last]
    delivered, silent_s = after.delivered - before.delivered, max(0.0, ended_s - after.read_s)
    return MovedFrames(
        seconds=after.t_s - before.t_s + silent_s,
        frames=after.frames - before.frames,
        delivered=delivered,
        dropped=after.dropped - before.dropped,
        lost=after.lost - before.lost,
        unread=after.unread - before.unread,
        late_ms_mean=max(0.0, after.late_ms - before.late_ms) / delivered if delivered else None,
        late_ms_max=max(each.late_ms_max for each in counters[1 : last + 1]),
        stalled_s=after.paused_s - before.paused_s + silent_s,
        cpu_s=after.cpu_s - before.cpu_s,
    )


def _stood_still(seconds: float) -> MovedFrames:
    """A program silent for this long is taken for dead."""
    return MovedFrames(
        seconds=seconds,
        frames=0,
        delivered=0,
        dropped=0,
        lost=0,
        unread=0,
        late_ms_max=0.0,
        stalled_s=seconds,
        cpu_s=0.0,
    )


def _read_s(counters: Counters) -> float:
    return counters.read_s


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; empty if it is none."""
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Ending of a process that is about to end; None if it continues."""
    try:
        return process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None


def _ended(process: subprocess.Popen[bytes], reader: threading.Thread | None) -> None:
    """End a link program and wait until it is gone."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_TIMEOUT_S)
    if reader is not None:
        reader.join(END_TIMEOUT_S)


def _tail(path: Path) -> str:
    """The end of a log, after a colon; empty without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f": {text[-STDERR_TAIL_CHARS:]}" if text else ""
