"""Probe of a web server's own counts, from its status page: `mod_status` of Apache, `stub_status` of nginx."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.probe import pages
from steelyard.probe.base import Placement, Watched

NAME: Final = "httpd"
WAY: Final = "server_status"
FIELDS: Final = {
    Metric(
        name="node_httpd_busy_workers",
        unit="workers",
        description="threads (Apache) or connections (nginx) that read a request or write an answer, one of them this "
        "probe's",
    ): r"BusyWorkers: (\d+)|Reading: (\d+) Writing: (\d+)",
    Metric(
        name="node_httpd_requests",
        unit="requests",
        description="requests since the start, with those of this probe",
    ): r"Total Accesses: (\d+)|server accepts handled requests \d+ \d+ (\d+)",
    Metric(
        name="node_httpd_connections",
        unit="connections",
        description="open connections; Apache counts them when it looks for those that time out, so up to a minute ago",
    ): r"ConnsTotal: (\d+)|Active connections: (\d+)",
}
"""Metric to the numbers in either page whose sum it is."""


class HttpdProbe:
    """Probe that asks each server for its status page, once per interval."""

    name = NAME
    way = WAY
    metrics = tuple(FIELDS)

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """A loop of requests to each server, on its node. Raises ProbeError for another system."""
        return pages.asking(NAME, WAY, watched, interval_s, "/server-status?auto")

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples of one page. Raises ProbeError on any other line."""
        try:
            _, (t_s, text) = pages.readings(line)
            return [Sample(t_s, node, metric.name, _number(pattern, text)) for metric, pattern in FIELDS.items()]
        except ValueError as error:
            raise ProbeError(f"{node}: not a line of the probe {NAME}: {line[:200]!r}") from error


def _number(pattern: str, text: str) -> float:
    if (match := re.search(pattern, text)) is None:
        raise ValueError(pattern)
    return float(sum(int(number or 0) for number in match.groups()))


def create() -> HttpdProbe:
    """The probe; no side effects."""
    return HttpdProbe()
