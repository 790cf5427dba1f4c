"""Findings of `steelyard doctor` about links: what this kernel can make by itself, and what it takes otherwise."""

from __future__ import annotations

import os
from pathlib import Path

from steelyard.cli.finding import Finding, judged
from steelyard.node import machine_facts
from steelyard.site import _links

FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def of_this_machine() -> list[Finding]:
    """TAP devices, netem and the packet filters of bridges. Takes a tenth of a second."""
    privileged = all(machine_facts.capable(name) for name in ("net_admin", "sys_admin"))
    netem = _links.has_netem() if privileged else None
    filters = FILTER.read_text(encoding="ascii").strip() if FILTER.is_file() else ""
    return [
        tap(usable=os.access(_links.TUN, os.R_OK | os.W_OK), there=_links.TUN.exists()),
        netem_of(netem),
        bridge_filters(filters),
    ]


def tap(*, usable: bool, there: bool) -> Finding:
    """TAP devices, which the link program takes. Pure."""
    state = "there" if usable else "not readable and writable for this user" if there else "missing"
    mend = (
        "links with delay, loss or 802.11 take it: run as root"
        if there
        else "links with delay, loss or 802.11 take it. As root: modprobe tun; in a container: --device /dev/net/tun"
    )
    return judged("TAP devices", f"{_links.TUN} {state}", usable, mend)


def netem_of(there: bool | None) -> Finding:
    """The kernel's emulation of delay and loss. Nothing depends on it. Pure."""
    if there is None:
        mend = "as root it is tried; without root there are no links"
        return Finding(name="netem", state="poor", found="not tried: this user may not", mend=mend)
    text = "the kernel makes delay and loss" if there else "not in this kernel: the link program makes delay and loss"
    # No fault: the other way needs a little of the processor, which is measured and told.
    return Finding(name="netem", state="good", found=text)


def bridge_filters(value: str) -> Finding:
    """Whether frames on bridges pass the machine's packet filters. `value`: of the kernel's switch; empty without
    br_netfilter. Pure."""
    if value != "1":
        return Finding(name="bridges", state="good", found="no packet filters between nodes on bridges")
    mend = (
        "bridges of site local are in namespaces of their own, without it; on others a FORWARD policy of DROP, as "
        "dockerd sets it, cuts nodes off. As root: sysctl -w net.bridge.bridge-nf-call-iptables=0"
    )
    return Finding(name="bridges", state="poor", found="frames on bridges of this machine pass iptables", mend=mend)
