"""Link between the nodes: section `link` of a study, with the numbers of the named link that it chooses."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from steelyard.model.value import Value

NODAL = "nodal"
"""The name of a site's network as it is."""
RATES_MBIT = {
    "802.11b": (1.0, 2.0, 5.5, 11.0),
    "802.11g": (6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0),
    "802.11n": (6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0),
}
"""Data rates of each 802.11 amendment: HR/DSSS, ERP-OFDM, HT at 20 MHz with one spatial stream and the long guard
interval (IEEE 802.11-2020, clauses 16, 18 and 19)."""
BASIC_MBIT = {"802.11b": (1.0, 2.0), "802.11g": (6.0, 12.0, 24.0), "802.11n": (6.0, 12.0, 24.0)}
"""Rates of each amendment at which answers (ACK, block ACK, CTS) may go."""
PHY = re.compile(r"(802\.11[bgn])-(\d+(?:\.\d)?)")
OF_SWITCHED = ("rate_mbit", "delay_ms", "jitter_ms", "loss_percent", "duplex")
OF_WIRELESS = (
    "phy", "ack_rate_mbit", "rts_threshold_bytes", "aggregate", "retry_limit", "frame_error", "hidden", "load_nodes",
)  # fmt: skip
HEADER_BYTES = 14
"""Bytes of an Ethernet header, which a rate counts."""
TCP_OVERHEAD_BYTES = 52
"""Bytes of the headers of IPv4 and TCP with time stamps, within the MTU."""
DEFAULT_MTU = 1500


class Lateness(NamedTuple):
    """By how much packets are late, of which direction, and how long."""

    delay_ms: float
    jitter_ms: float
    direction: Literal["both", "to", "from"]
    for_s: float
    """0 ends what was said before."""


class LinkChoice(Value):
    """Link between the nodes. `name` chooses a shipped link or a TOML file; the other fields override those of that
    link. A field that is in neither limits nothing."""

    name: str = NODAL
    """nodal: the network of the site as it is; ethernet-100, ethernet-1000, wan-20ms, 802.11b, 802.11g, 802.11n: see
    `docs/howto/measure-over-other-links.md`; or the path of a TOML file, relative to the study."""
    medium: Literal["switched", "802.11"] | None = None
    """switched: each node has its own link to a switch; 802.11: all nodes share one half-duplex radio channel with
    an access point, which relays."""
    rate_mbit: float | None = Field(default=None, gt=0, le=100_000)
    """Medium switched: rate of each node's link in each direction, 10^6 bit/s of Ethernet frames without preamble,
    check sequence and gap."""
    delay_ms: float | None = Field(default=None, ge=0, le=10_000)
    """Medium switched: one-way delay from node to node."""
    jitter_ms: float | None = Field(default=None, ge=0, le=10_000)
    """Medium switched: the delay varies evenly by this much to either side. Frames do not overtake each other."""
    loss_percent: float | None = Field(default=None, ge=0, lt=100)
    """Medium switched: frames lost at random."""
    duplex: Literal["full", "half"] | None = None
    """Medium switched. full (default): a node sends and receives at the same time; half: one at a time."""
    mtu: int | None = Field(default=None, ge=576, le=9216)
    """Largest IP packet, bytes, on both ends of every link."""
    queue_frames: int | None = Field(default=None, ge=1, le=100_000)
    """Most frames that wait for a link in each direction; further ones are dropped."""
    phy: str | None = Field(default=None, max_length=20)
    """Medium 802.11: amendment and data rate in Mbit/s, such as 802.11g-54 or 802.11n-65."""
    ack_rate_mbit: float | None = Field(default=None, gt=0, le=65)
    """Medium 802.11: rate of ACK, block ACK, RTS and CTS, Mbit/s; none: the highest basic rate up to the data rate."""
    rts_threshold_bytes: int | None = Field(default=None, ge=0, le=65_535)
    """Medium 802.11: frames of at least this many bytes are announced by RTS and CTS; none: no frame. 65535 switches it
    off where the named link has it on."""
    aggregate: int | None = Field(default=None, ge=1, le=64)
    """Medium 802.11, 802.11n only: most frames in one A-MPDU, which one block ACK answers; 1 (default): no
    aggregation."""
    retry_limit: int | None = Field(default=None, ge=1, le=255)
    """Medium 802.11: attempts after which a frame is given up; default 7."""
    frame_error: float | None = Field(default=None, ge=0, lt=1)
    """Medium 802.11: probability that a data frame arrives damaged although nothing collided; default 0."""
    hidden: tuple[tuple[str, str], ...] | None = Field(default=None, max_length=100)
    """Medium 802.11: pairs of nodes, such as ["n1", "n2"], that do not hear each other; all hear the access point."""
    load_nodes: Literal["same", "wired"] | None = None
    """Medium 802.11. same (default): load nodes are stations like the database nodes; wired: they are connected to the
    access point by Ethernet and take no part in the contention."""

    @model_validator(mode="after")
    def _of_its_medium(self) -> LinkChoice:
        """A field of the other medium would have no effect. Only a link with its medium is complete."""
        if self.medium is None:
            return self
        foreign = OF_WIRELESS if self.medium == "switched" else OF_SWITCHED
        if extra := [name for name in foreign if getattr(self, name) is not None]:
            other = "802.11" if self.medium == "switched" else "switched"
            raise ValueError(f"medium {self.medium} has no {', '.join(extra)}: only medium {other} has")
        if self.medium == "802.11":
            self._check_phy()
        if self.jitter_ms and self.jitter_ms > (self.delay_ms or 0):
            raise ValueError(f"jitter_ms {self.jitter_ms:g} is more than delay_ms {self.delay_ms or 0:g}")
        return self

    def _check_phy(self) -> None:
        match = PHY.fullmatch(self.phy or "")
        if match is None or float(match[2]) not in RATES_MBIT[match[1]]:
            known = "; ".join(
                f"{name}-{', '.join(f'{rate:g}' for rate in rates)}" for name, rates in RATES_MBIT.items()
            )
            raise ValueError(f"medium 802.11 needs a phy, and {self.phy!r} is none; allowed: {known}")
        if (self.aggregate or 1) > 1 and match[1] != "802.11n":
            raise ValueError(f"aggregate = {self.aggregate}: {self.phy} has no A-MPDU, only 802.11n has")
        basic = [rate for rate in BASIC_MBIT[match[1]] if rate <= float(match[2])]
        if self.ack_rate_mbit is not None and self.ack_rate_mbit not in basic:
            allowed = ", ".join(f"{rate:g}" for rate in basic)
            raise ValueError(f"ack_rate_mbit = {self.ack_rate_mbit:g}: {self.phy} answers at {allowed} Mbit/s")

    @property
    def plain(self) -> bool:
        """Whether it is the network of the site as it is."""
        return self == PLAIN

    @property
    def given(self) -> dict[str, Any]:
        """The fields that have a value, without the name."""
        return {name: value for name, value in self if name != "name" and value is not None}

    @property
    def goodput_mbit_per_s(self) -> float | None:
        """Capacity of one TCP connection, 10^6 bit/s of payload; None without a rate, and on a shared medium, where it
        depends on who else sends."""
        if self.rate_mbit is None:
            return None
        mtu = self.mtu or DEFAULT_MTU
        return self.rate_mbit * (mtu - TCP_OVERHEAD_BYTES) / (mtu + HEADER_BYTES)

    @property
    def round_trip_ms(self) -> float | None:
        """The round trip that the delay makes; None without a delay."""
        return None if self.delay_ms is None else 2 * self.delay_ms


PLAIN = LinkChoice()


class NamedLink(Value):
    """A link as one TOML file states it."""

    title: str
    """The link in a few words."""
    source: str
    """Where each number comes from: standards, publications, measurements."""
    not_modelled: str
    """Differences from such a link elsewhere."""
    link: dict[str, Any] = Field(default_factory=dict)
    """The fields of section `link`."""
