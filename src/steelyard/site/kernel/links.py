"""Link of a lease in network namespaces: the kernel's bridge and queueing disciplines, or our own program.

The kernel makes what it can make exactly: the network as it is, a rate in each direction (tbf), and, where it has
netem, delay and loss. `steelyard-agent link` makes everything else: a TAP device in each namespace is its cable, and it
moves the frames through its own medium, the 802.11 one included. It carries the lease's mark, and its devices go with
it, so a killed conductor leaves neither.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steelyard.judging.dilation import effective_link
from steelyard.leases.records import MARKER, marked
from steelyard.leases.steps import Step
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.model.link import DEFAULT_MTU, HEADER_BYTES, LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.node.command import run
from steelyard.node.tasks import in_a_thread
from steelyard.site.kernel import network
from steelyard.site.kernel.link_program import PROGRAM, LinkProgram
from steelyard.site.kernel.network import BRIDGE, INTERFACE, Member

MEDIA = frozenset({"switched", "802.11"})
TUN = Path("/dev/net/tun")
BURST_S = 0.001
"""Time at full rate that may pass at once: a timer of the kernel may be as late without loss of rate."""
FAST_MBIT = 200.0
"""From this rate on segmentation offload stays on, because the processor would limit the rate, and the bucket is
larger, so that a segment of 64 KiB fits."""
FAST_BURST_S = 0.003
BURST_FRAMES = 2
"""And at least this many frames."""
DEFAULT_QUEUE_FRAMES = 1000
"""The default length of Linux's transmit queues."""
UNLIMITED_MBIT = 10_000.0
"""The rate for which a delay without a rate has room."""
TC_TIMEOUT_S = 30.0
PROBE_TIMEOUT_S = 5.0


class Fabric(Protocol):
    """Link between the nodes of a lease, once their namespaces exist."""

    @property
    def how(self) -> str:
        """Mechanism of the link, for people; empty for the network as it is."""
        ...

    def steps(self) -> Sequence[Step]:
        """Mechanism of the link."""
        ...

    def failure(self) -> str | None:
        """Reason why it no longer works, or None."""
        ...

    async def moved(self, begun_s: float, ended_s: float) -> MovedFrames | None:
        """Traffic of its program between two times (seconds since the epoch); None without a program."""
        ...

    @property
    def priority(self) -> str:
        """Scheduling of its program; empty without one."""
        ...

    def process_ids(self) -> frozenset[int]:
        """Its own processes."""
        ...

    async def end(self) -> None:
        """End its processes. Idempotent; the contents of the namespaces disappear with them."""
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
        """Bridge and veth pairs, addresses, then the link's settings."""
        steps = [
            Step("switch", lambda: network.add_switch(self.identity, self.members)),
            Step("addresses", lambda: network.add_addresses(self.identity, self.members)),
        ]
        return steps if self.link.plain else [*steps, Step("link", self._shape)]

    def failure(self) -> str | None:
        """The kernel's does not fail."""
        return None

    async def moved(self, begun_s: float, ended_s: float) -> MovedFrames | None:
        """The kernel does not say."""
        return None

    @property
    def priority(self) -> str:
        """The kernel's own."""
        return ""

    def process_ids(self) -> frozenset[int]:
        """None."""
        return frozenset()

    async def end(self) -> None:
        """Nothing to end."""

    async def _shape(self) -> None:
        for name, lines in interface_lines(self.identity, self.members, self.link).items():
            await network.batch(self.identity, name, lines)
        for name, lines in discipline_lines(self.identity, self.members, self.link).items():
            await _tc(self.identity, name, lines)


def made_by(link: LinkChoice) -> str:
    """Mechanism of a link, before it is known whether the kernel has netem. Pure."""
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


def lacking(link: LinkChoice, *, namespaces: bool, tc: str | None, tun: Path = TUN) -> str | None:
    """Reason why this machine cannot make a link, or None. `namespaces`: whether nodes have their own networks;
    `tc`: path of the program. Whether the kernel has netem is asked only where there are no TAP devices."""
    if link.plain:
        return None
    if not namespaces:
        return f'link {link.name} needs mode = "namespaces" and root: nodes on loopback addresses have no links'
    usable = os.access(tun, os.R_OK | os.W_OK)
    if takes_program(link, netem=not usable and tc is not None and _delays(link) and has_netem()):
        return None if usable else f"link {link.name} needs TAP devices: as root, modprobe tun, until {tun} exists"
    if link.rate_mbit is not None and tc is None:
        return f"link {link.name} needs the program tc (Debian: apt install iproute2)"
    return None


def idle_queue(link: LinkChoice) -> str | None:
    """Reason why a queue length would have no effect, or None. Pure."""
    if link.queue_frames is None or link.rate_mbit or link.delay_ms or takes_program(link, netem=True):
        return None
    return "link.queue_frames has no effect without rate_mbit or delay_ms: nothing is queued"


def unknown_station(link: LinkChoice, stations: Sequence[str]) -> str | None:
    """Error for a node of a hidden pair that is not a station of the channel, or None. Pure."""
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
    """Mechanism of a link on this machine, stretched in time by the dilation: the kernel where it can, otherwise our
    program."""
    netem = _delays(link) and not takes_program(link, netem=True) and await in_a_thread(has_netem)
    if takes_program(link, netem=netem):
        return LinkProgram(identity, members, link, folder, environment, seed, dilation)
    return Bridge(identity, members, effective_link(link, dilation))


def has_netem() -> bool:
    """Whether the kernel has netem: tried in a network namespace that ends with the command, within PROBE_TIMEOUT_S."""
    argv = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    try:
        tried = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def interface_lines(identity: str, members: Sequence[Member], link: LinkChoice) -> dict[str, list[str]]:
    """Lines for `ip -batch`, by namespace: the MTU of both ends; on slow links no segmentation offload, so that frames
    are those of the link and a queue holds them one by one."""
    bridge_end = [f"link set {member.name} mtu {link.mtu}" for member in members] if link.mtu is not None else []
    own_end = [f"link set {INTERFACE} mtu {link.mtu}"] if link.mtu is not None else []
    if _delays(link) or (link.rate_mbit is not None and not _fast(link)):
        own_end.append(f"link set {INTERFACE} gso_max_segs 1")
    lines = {network.namespace(identity, member.name): own_end for member in members}
    return {network.switch(identity): bridge_end, **lines}


def discipline_lines(identity: str, members: Sequence[Member], link: LinkChoice) -> dict[str, list[str]]:
    """Lines for `tc -batch`, by namespace. What a node sends meets delay and loss, so that each way meets them once;
    the rate holds in both directions."""
    down = [line for member in members for line in _rate_lines(member.name, link)]
    up = [f"qdisc add dev {INTERFACE} root {_netem(link)}"] if _delays(link) else _rate_lines(INTERFACE, link)
    lines = {network.namespace(identity, member.name): up for member in members}
    return {network.switch(identity): down, **lines}


def _rate_lines(interface: str, link: LinkChoice) -> list[str]:
    """A token bucket, which counts its queue in bytes; on slow links with a queue of frames. On fast ones a frame may
    be a segment of 64 KiB, of which such a queue would hold too much."""
    if link.rate_mbit is None:
        return []
    root = f"qdisc add dev {interface} root handle 1: {_tbf(link)}"
    if _fast(link):
        return [root]
    return [root, f"qdisc add dev {interface} parent 1:1 handle 2: pfifo limit {_queue_frames(link)}"]


def _tbf(link: LinkChoice) -> str:
    frame_bytes = _frame_bytes(link)
    rate_bit = round((link.rate_mbit or 0.0) * 1e6)
    burst_s = FAST_BURST_S if _fast(link) else BURST_S
    burst_bytes = max(BURST_FRAMES * frame_bytes, round(rate_bit / 8 * burst_s))
    limit_bytes = _queue_frames(link) * frame_bytes
    return f"tbf rate {rate_bit}bit burst {burst_bytes}b limit {max(limit_bytes, burst_bytes)}b"


def _queue_frames(link: LinkChoice) -> int:
    return link.queue_frames or DEFAULT_QUEUE_FRAMES


def _fast(link: LinkChoice) -> bool:
    return link.rate_mbit is not None and link.rate_mbit >= FAST_MBIT


def _frame_bytes(link: LinkChoice) -> int:
    return (link.mtu or DEFAULT_MTU) + HEADER_BYTES


def _netem(link: LinkChoice) -> str:
    # Its limit counts what is in flight, too, and not only what waits (tc-netem(8)).
    under_way = math.ceil((link.rate_mbit or UNLIMITED_MBIT) * 1e3 * (link.delay_ms or 0.0) / 8 / _frame_bytes(link))
    words = ["netem", f"limit {_queue_frames(link) + under_way}"]
    words += [f"delay {round(link.delay_ms * 1000)}us"] if link.delay_ms else []
    words += [f"loss {link.loss_percent:g}%"] if link.loss_percent else []
    words += [f"rate {round(link.rate_mbit * 1e6)}bit"] if link.rate_mbit else []
    return " ".join(words)


def _delays(link: LinkChoice) -> bool:
    return bool(link.delay_ms or link.loss_percent)


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
            "run `steelyard doctor` to see what this kernel has",
        ) from error
