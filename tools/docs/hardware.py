"""`docs/reference/hardware.md`: the shipped node profiles and links, from their files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from steelyard.model.link import NamedLink
from steelyard.model.profile import Profile
from steelyard.plugins.find import Plugins, shipped_values
from steelyard.study import links, profiles
from tools.docs.marked import COMMAND

KEPT: Final = "\u00a0"
"""A space at which no line is broken."""
BEGIN: Final = f"""\
# Shipped node profiles and links

<!-- made by `{COMMAND}`, not to be edited -->

Profiles and links describe hardware as numbers. Each gives the source of its numbers and what it does not model. Read
that before you compare with real hardware. How to use them, and how to write your own: [stand in for other
hardware](../howto/stand-in-for-other-hardware.md), [measure over other links](../howto/measure-over-other-links.md).
"""
PROFILES: Final = """\
## Node profiles

These are the values of `node.profile`. *Processors* (`node.cpus`) are the number of cores times a core's speed
relative to a core of an Intel Core i3-3220 at 3.3 GHz. A processor of your machine counts as one such core: [what to
do if it is faster](../howto/stand-in-for-other-hardware.md#what-a-limited-node-is-not). Memory, swap and heap are in
MiB, and disks in GB. Disk rates are in MB/s (10^6 bytes) of sequential transfers, and in random 4 KiB operations per
second. An empty cell limits nothing, except swap: a node with limited memory has none unless its profile or the study
sets it.
"""
LINKS: Final = """\
## Links

These are the values of `link.name`. `rate_mbit` is per node and direction, and `delay_ms` is one way, from node to
node. See [`[link]`](study-file.md#link) for the other fields.
"""
COLUMNS: Final = {
    "processors": ("cpus",), "memory": ("memory_mb",), "swap": ("swap_mb",), "JVM heap": ("heap_mb",),
    "disk, GB": ("disk_gb",), "MB/s: read, write": ("disk_read_mb_per_s", "disk_write_mb_per_s"),
    "operations/s: read, write": ("disk_read_ops_per_s", "disk_write_ops_per_s"),
}  # fmt: skip
"""Column of the table of profiles to the fields that it shows."""


def page() -> str:
    """The whole page."""
    return "\n".join([BEGIN, PROFILES, *_profiles(), LINKS, *_links()])


def _profiles() -> Iterator[str]:
    named = {name: profiles.profile_of(Plugins(), name) for name in shipped_values(profiles.KIND)}
    yield f"| profile | {' | '.join(COLUMNS)} |"
    yield "| --- |" + " --- |" * len(COLUMNS)
    for name, profile in named.items():
        yield f"| [`{name}`](#{_anchor(name)}) | {' | '.join(_cells(profile))} |"
    for name, profile in named.items():
        yield from _words(name, profile)
    yield ""


def _cells(profile: Profile) -> Iterator[str]:
    for fields in COLUMNS.values():
        shown = ", ".join(f"{value:g}" for field in fields if (value := getattr(profile, field)) is not None)
        speed = profile.relative_speed or 1.0
        yield f"{profile.cores} x {speed:g} = {shown}" if fields == ("cpus",) and profile.cores else shown


def _links() -> Iterator[str]:
    for name in shipped_values(links.KIND):
        link = links.link_of(Plugins(), name)
        yield from _words(name, link)
        yield ""
        yield ", ".join(f"`{field} = {_toml(value)}`" for field, value in link.link.items())
    yield ""


def _words(name: str, value: Profile | NamedLink) -> Iterator[str]:
    yield ""
    yield f"### `{name}`"
    yield ""
    yield f"{value.title[0].upper()}{value.title[1:]}."
    yield ""
    for title, text in (("Source", value.source), ("Not modelled", value.not_modelled)):
        # A number with a point at the beginning of a line would be an item of a list.
        line = re.sub(r" (\d+\.) ", f"{KEPT}\\1 ", f"* **{title}.** {' '.join(text.split())}")
        yield textwrap.fill(line, 118, subsequent_indent="  ", break_on_hyphens=False).replace(KEPT, " ")


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"
