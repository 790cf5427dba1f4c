"""Link of a lease in network namespaces: the kernel's bridge and queueing disciplines, or our own program.

The kernel makes what it can make exactly: the network as it is, a rate in each direction (tbf), and, where it has
netem, delay and loss. `steelyard-agent link` makes everything else: a TAP device in each namespace is its cable, and it
moves the frames by a medium of its own, the 802.11 one included. It carries the lease's mark, and its devices go with
it, so a killed conductor leaves neither.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Protocol

from steelyard.judging.dilation import effective_link
from steelyard.leases.records import MARKER, marked
from steelyard.leases.steps import Step
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.model.link import DEFAULT_MTU, HEADER_BYTES, LinkChoice
from steelyard.node import agent
from steelyard.node.command import run
from steelyard.node.processor import RunningProgram
from steelyard.node.tasks import in_a_thread
from steelyard.site import _network
from steelyard.site._network import BRIDGE, INTERFACE, PREFIX_LENGTH, Member

MEDIA = frozenset({"switched", "802.11"})
TUN = Path("/dev/net/tun")
BURST_S = 0.001
"""Time at full rate that may pass at once: a timer of the kernel may be as late without loss of rate."""
FAST_MBIT = 200.0
"""From this rate on segmentation offload stays on, because the processor would limit the rate, and the bucket is
larger, so that a segment of 64 KiB fits."""
FAST_BURST_S = 0.003
BURST_FRAMES = 2
"""And at least so many frames."""
DEFAULT_QUEUE_FRAMES = 1000
"""The default length of Linux's transmit queues."""
UNLIMITED_MBIT = 10_000.0
"""The rate for which a delay without a rate has room."""
TC_TIMEOUT_S = 30.0
PROBE_TIMEOUT_S = 5.0
READY_TIMEOUT_S = 20.0
END_TIMEOUT_S = 3.0
LONGEST_LINE_BYTES = 1 << 16
STDERR_TAIL_CHARS = 500
PROGRAM = "steelyard-agent link"
CONFIG_FILE, LOG_FILE = "link.json", "link.log"


class Fabric(Protocol):
    """What joins the nodes of a lease, once their namespaces exist."""

    @property
    def how(self) -> str:
        """What makes the link, for people; empty for the network as it is."""
        ...

    def steps(self) -> Sequence[Step]:
        """What makes it."""
        ...

    def failure(self) -> str | None:
        """Why it no longer works, or None."""
        ...

    def process_ids(self) -> frozenset[int]:
        """Its own processes."""
        ...

    async def end(self) -> None:
        """End its processes. Idempotent; what is in the namespaces goes with them."""
        ...


@dataclass(frozen=True)
class Bridge:
    """A bridge of the kernel, with queueing disciplines on both ends of each veth pair where the link asks for them."""

    identity: str
    members: Sequence[Member]
    link: LinkChoice

    @property
    def how(self) -> str:
        """The link, and the parts of the kernel that make it; empty for the network as it is."""
        if self.link.plain:
            return ""
        disciplines = [name for name, used in (("tbf", self.link.rate_mbit), ("netem", _delays(self.link))) if used]
        return f"{self.link.name}: bridge{''.join(f', {name}' for name in disciplines)}"

    def steps(self) -> Sequence[Step]:
        """Bridge and veth pairs, addresses, then what the link asks for."""
        steps = [
            Step("switch", lambda: _network.add_switch(self.identity, self.members)),
            Step("addresses", lambda: _network.add_addresses(self.identity, self.members)),
        ]
        return steps if self.link.plain else [*steps, Step("link", self._shape)]

    def failure(self) -> str | None:
        """The kernel's does not fail."""
        return None

    def process_ids(self) -> frozenset[int]:
        """None."""
        return frozenset()

    async def end(self) -> None:
        """Nothing to end."""

    async def _shape(self) -> None:
        for name, lines in interface_lines(self.identity, self.members, self.link).items():
            await _network.batch(self.identity, name, lines)
        for name, lines in discipline_lines(self.identity, self.members, self.link).items():
            await _tc(self.identity, name, lines)


class LinkProgram:
    """`steelyard-agent link`: one process of this machine, outside of the nodes' limits."""

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

    @property
    def how(self) -> str:
        """The link, and the program."""
        return f"{self._link.name}: {PROGRAM}"

    def steps(self) -> Sequence[Step]:
        """Loopback interfaces, then the program, which makes all others."""
        return [Step("loopbacks", self._loopbacks), Step("link", self._start)]

    def failure(self) -> str | None:
        """How the program ended, if it has."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"the link program ended with code {self._process.returncode}{_tail(self._log)}"

    def process_ids(self) -> frozenset[int]:
        """The program, while it runs."""
        running = self._process is not None and self._process.poll() is None
        return frozenset({self._process.pid}) if running and self._process is not None else frozenset()

    async def end(self) -> None:
        """Close its input, which ends it; kill it if that does not. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            await in_a_thread(functools.partial(_ended, process))

    async def _loopbacks(self) -> None:
        for member in self._members:
            await _network.batch(self._identity, _network.namespace(self._identity, member.name), ["link set lo up"])

    async def _start(self) -> None:
        config = self._folder / CONFIG_FILE
        content = program_config(self._identity, self._members, self._link, self._seed, self._dilation)
        config.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        self._process = _started([str(agent.find()), "link", "--config", str(config)], self._log, self._environment)
        line = await in_a_thread(functools.partial(_first_line, self._process, READY_TIMEOUT_S))
        if not _is_ready(line):
            raise SiteError(
                f"link {self._link.name}: the link program was not ready within {READY_TIMEOUT_S:g} s"
                f"{_tail(self._log)}",
                "`steelyard doctor` says whether this machine has TAP devices",
            )


def made_by(link: LinkChoice) -> str:
    """What makes a link, before it is known whether the kernel has netem. Pure."""
    if link.plain:
        return "kernel: bridge"
    if takes_program(link, netem=True):
        return PROGRAM
    disciplines = [name for name, used in (("tbf", link.rate_mbit), ("netem", _delays(link))) if used]
    without = f"; without netem, {PROGRAM}" if _delays(link) else ""
    return f"kernel: {', '.join(['bridge', *disciplines])}{without}"


def takes_program(link: LinkChoice, *, netem: bool) -> bool:
    """Whether a link takes the link program. `netem`: whether the kernel has it; its jitter lets frames overtake each
    other, which those of a link do not."""
    if link.medium == "802.11" or link.duplex == "half" or link.jitter_ms:
        return True
    return _delays(link) and not netem


def lacking(link: LinkChoice, *, namespaces: bool, tc: str | None) -> str | None:
    """Why this machine cannot make a link, or None. `namespaces`: whether nodes have networks of their own; `tc`: path
    of the program. Fast: whether the kernel has netem is not asked, because the program needs none."""
    if link.plain:
        return None
    if not namespaces:
        return f'link {link.name} takes mode = "namespaces" and root: nodes on loopback addresses have no links'
    if takes_program(link, netem=False):
        usable = os.access(TUN, os.R_OK | os.W_OK)
        return None if usable else f"link {link.name} takes TAP devices: as root, modprobe tun, until {TUN} is there"
    if link.rate_mbit is not None and tc is None:
        return f"link {link.name} takes the program tc (Debian: apt install iproute2)"
    return None


def unknown_station(link: LinkChoice, stations: Sequence[str]) -> str | None:
    """Which node of a hidden pair is no station of the channel, or None. Pure."""
    for name in [name for pair in link.hidden or () for name in pair]:
        if name not in stations:
            return f"link.hidden names {name}, but the stations of the channel are {', '.join(stations)}"
    return None


async def fabric(
    identity: str,
    members: Sequence[Member],
    link: LinkChoice,
    folder: Path,
    environment: Mapping[str, str],
    seed: int,
    dilation: float = 1.0,
) -> Fabric:
    """What makes a link on this machine, stretched in time by the dilation: the kernel where it can, else our
    program."""
    netem = _delays(link) and not takes_program(link, netem=True) and await has_netem()
    if takes_program(link, netem=netem):
        return LinkProgram(identity, members, link, folder, environment, seed, dilation)
    return Bridge(identity, members, effective_link(link, dilation))


async def has_netem() -> bool:
    """Whether the kernel has netem: tried in a network namespace that ends with the command, within PROBE_TIMEOUT_S."""
    argv = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    try:
        done = await run(None, argv, timeout_s=PROBE_TIMEOUT_S, check=False)
    except CommandFailed:
        return False
    return done.exit_code == 0


def interface_lines(identity: str, members: Sequence[Member], link: LinkChoice) -> dict[str, list[str]]:
    """Lines for `ip -batch`, by namespace: the MTU of both ends; on slow links no segmentation offload, so that frames
    are those of the link and a queue holds them one by one."""
    bridge_end = [f"link set {member.name} mtu {link.mtu}" for member in members] if link.mtu is not None else []
    own_end = [f"link set {INTERFACE} mtu {link.mtu}"] if link.mtu is not None else []
    if _delays(link) or (link.rate_mbit is not None and not _fast(link)):
        own_end.append(f"link set {INTERFACE} gso_max_segs 1")
    lines = {_network.namespace(identity, member.name): own_end for member in members}
    return {_network.switch(identity): bridge_end, **lines}


def discipline_lines(identity: str, members: Sequence[Member], link: LinkChoice) -> dict[str, list[str]]:
    """Lines for `tc -batch`, by namespace. What a node sends meets delay and loss, so that each way meets them once;
    the rate holds in both directions."""
    down = [f"qdisc add dev {member.name} root {_tbf(link)}" for member in members] if link.rate_mbit else []
    if _delays(link):
        up = [f"qdisc add dev {INTERFACE} root {_netem(link)}"]
    else:
        up = [f"qdisc add dev {INTERFACE} root {_tbf(link)}"] if link.rate_mbit else []
    lines = {_network.namespace(identity, member.name): up for member in members}
    return {_network.switch(identity): down, **lines}


def _tbf(link: LinkChoice) -> str:
    frame_bytes = _frame_bytes(link)
    rate_bit = round((link.rate_mbit or 0.0) * 1e6)
    burst_s = FAST_BURST_S if _fast(link) else BURST_S
    burst_bytes = max(BURST_FRAMES * frame_bytes, round(rate_bit / 8 * burst_s))
    limit_bytes = (link.queue_frames or DEFAULT_QUEUE_FRAMES) * frame_bytes
    return f"tbf rate {rate_bit}bit burst {burst_bytes}b limit {max(limit_bytes, burst_bytes)}b"


def _fast(link: LinkChoice) -> bool:
    return link.rate_mbit is not None and link.rate_mbit >= FAST_MBIT


def _frame_bytes(link: LinkChoice) -> int:
    return (link.mtu or DEFAULT_MTU) + HEADER_BYTES


def _netem(link: LinkChoice) -> str:
    # Its limit counts what is under way, too, and not only what waits (tc-netem(8)).
    under_way = math.ceil((link.rate_mbit or UNLIMITED_MBIT) * 1e3 * (link.delay_ms or 0.0) / 8 / _frame_bytes(link))
    words = ["netem", f"limit {(link.queue_frames or DEFAULT_QUEUE_FRAMES) + under_way}"]
    words += [f"delay {round(link.delay_ms * 1000)}us"] if link.delay_ms else []
    words += [f"loss {link.loss_percent:g}%"] if link.loss_percent else []
    words += [f"rate {round(link.rate_mbit * 1e6)}bit"] if link.rate_mbit else []
    return " ".join(words)


def _delays(link: LinkChoice) -> bool:
    return bool(link.delay_ms or link.loss_percent)


def program_config(
    identity: str, members: Sequence[Member], link: LinkChoice, seed: int, dilation: float = 1.0
) -> dict[str, Any]:
    """Configuration of `steelyard-agent link`. `dilation`: rates are divided by it, times multiplied."""
    queue = {} if link.queue_frames is None else {"queue_frames": link.queue_frames}
    chosen = link.model_dump(mode="json", include=set(MEDIUM_FIELDS[link.medium or "switched"]), exclude_none=True)
    kind = "802.11" if link.medium == "802.11" else "point-to-point"
    wired = link.load_nodes == "wired"
    return {
        "seed": seed,
        "dilation": dilation,
        "mtu": link.mtu or DEFAULT_MTU,
        "medium": {"kind": kind, **chosen, **queue},
        "ports": [
            {
                "name": member.name,
                "namespace": str(_network.path(_network.namespace(identity, member.name))),
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


async def _tc(identity: str, name: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    text = "".join(f"{line}\n" for line in lines).encode()
    try:
        await run(marked({MARKER: identity}), ["tc", "-netns", name, "-batch", "-"], timeout_s=TC_TIMEOUT_S, stdin=text)
    except CommandFailed as error:
        reason = error.stderr_tail.strip() or error.message
        raise SiteError(
            f"cannot make the link of lease {identity} in {name}, {BRIDGE}: {reason}",
            "`steelyard doctor` says what this kernel has",
        ) from error


def _started(argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A program of this machine, with its errors in a file. Not of the event loop: the program outlives the loop that
    started it, as the lease does."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            env={**os.environ, **environment},
        )  # fmt: skip


def _first_line(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
    """The first line of a process's output; what there is of it when the process ends or the time is over."""
    assert process.stdout is not None
    descriptor, deadline, line = process.stdout.fileno(), time.monotonic() + timeout_s, b""
    while b"\n" not in line and len(line) < LONGEST_LINE_BYTES:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
            break
        chunk = os.read(descriptor, LONGEST_LINE_BYTES)
        if not chunk:
            break
        line += chunk
    return line


def _is_ready(line: bytes) -> bool:
    try:
        content = json.loads(line.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("ready") is True


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End a link program and wait until it is gone."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_TIMEOUT_S)
    if process.stdout is not None:
        process.stdout.close()


def _tail(path: Path) -> str:
    """The end of a log, after a colon; empty without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f": {text[-STDERR_TAIL_CHARS:]}" if text else ""
