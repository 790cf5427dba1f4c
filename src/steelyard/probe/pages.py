"""Pages that servers show over HTTP, as probes read them: the nodes' `curl` asks once per interval, in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.probe.base import Placement, Watched, with_way

CLIENT: Final = "curl"
SCRIPT: Final = """
set -f
before=
while :; do
  if page="$("$1" -q --globoff --noproxy '*' --silent --fail --max-time 5 "$2" | grep -E -- "$4")"; then
    now="$(echo "$(date +%s.%N)" $page)"
    [ -z "$before" ] || echo "$before | $now" || exit 0
    before="$now"
  fi
  sleep "$3" || exit 0
done
"""
"""Two pages per line, so that each line suffices for rates; each as one line behind its time. None of a server that
does not answer."""


def asking(
    probe: str, way: str, watched: Sequence[Watched], interval_s: float, path: str, lines: str = "."
) -> list[Placement]:
    """A loop of requests for a path at each node that offers the way, which keeps the lines that match an expression.
    Raises ProbeError if no node offers it."""
    every = (f"{interval_s:g}", lines)
    return [
        Placement(
            on=each.node,
            argv=("sh", "-c", SCRIPT, probe, each.ways[CLIENT], f"http://{each.ways[way]}{path}", *every),
            speaks_of=(each.node.name,),
        )
        for each in with_way(with_way(watched, way, probe), CLIENT, probe)
    ]


def readings(line: bytes) -> tuple[tuple[float, str], tuple[float, str]]:
    """Time and text of both pages. Raises ValueError on any other line."""
    before, now = (page.partition(" ") for page in line.decode().strip().split(" | "))
    return (float(before[0]), before[2]), (float(now[0]), now[2])
