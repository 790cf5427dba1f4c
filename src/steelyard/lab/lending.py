"""The leases that a study holds: taken for a start, given back after it, or handed on where their site can.

A start needs one lease, or two if another site lends its load nodes. Each site keeps its own record, lends and takes
back on its own; the laboratory sees one lease with the nodes of both.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from steelyard.judging.settings_hash import canonical
from steelyard.leases.lease import Lease, united
from steelyard.model.errors import LastingSiteError, SteelyardError
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.base import is_loopback
from steelyard.node.tasks import to_the_end, together
from steelyard.site.base import Rents, Request, Reuses, Site

NEXT_START: Final = 1.5
"""A start is expected to take up to this many times as long as the one before it."""
SECONDS_PER_HOUR: Final = 3600


@dataclass(frozen=True)
class Lender:
    """A site, what a start requests from it, and its settings."""

    site: Site
    request: Request
    section: str
    """Canonical text of the site's settings, without the numbers of nodes: leases are handed on where it is equal."""


def lenders_of(sites: Sequence[Site], requests: Sequence[Request], settings: TrialSettings) -> tuple[Lender, ...]:
    """The sites of a start that lend any nodes: that of the databases, then that of the load nodes, if it is another.
    Pure."""
    sections = ("site", "load_site")[: len(sites)]
    return tuple(
        Lender(site, request, _section(settings, section))
        for section, site, request in zip(sections, sites, requests, strict=True)
        if request.database_nodes or request.load_nodes
    )


@dataclass(frozen=True)
class _Held:
    """A lease between two starts."""

    section: str
    site: Site
    lease: Lease
    took_s: float
    """Time that its last start took."""


class Lending:
    """Holds at most one lease of each site between two starts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: list[_Held] = []
        self._lent_s: dict[str, float] = {}
        """Lease to when it was lent."""
        self._began_s = 0.0
        """When the start in progress had its leases."""

    async def lend(self, lenders: Sequence[Lender], until: datetime) -> Lease:
        """Nodes for a start: those of the leases that are held, where they can fulfil the requests; the others are
        released before anything is lent. If a site cannot lend, nothing stays lent. Raises SiteError."""
        leases: dict[int, Lease] = {}
        try:
            for place, lender in enumerate(lenders):
                recycled = await self._recycled(lender, until)
                if recycled is not None:
                    leases[place] = recycled
            await self.release()
            for place, lender in enumerate(lenders):
                if place not in leases:
                    asked_s = self._clock()
                    leases[place] = await lender.site.lease(lender.request, until)
                    self._lent_s[leases[place].id] = asked_s
            whole = united([leases[place] for place in sorted(leases)])
            if len(lenders) > 1 and (reason := _unreachable(whole)):
                raise LastingSiteError(reason, "docs/reference/study-file.md says which sites go together: [load_site]")
        except BaseException as first:
            if leases:
                await _undo(first, _release((lenders[place].site, lease) for place, lease in leases.items()))
            raise
        self._began_s = self._clock()
        return whole

    async def give_back(self, lenders: Sequence[Lender], lease: Lease, *, keep: bool) -> None:
        """Take a lease back after its start; `keep`: hold it for the next one where a site can hand it on. Raises
        SiteError."""
        spent = []
        for lender, part in zip(lenders, lease.parts or (lease,), strict=True):
            if keep and isinstance(lender.site, Reuses):
                self._held.append(_Held(lender.section, lender.site, part, self._clock() - self._began_s))
            else:
                spent.append((lender.site, part))
        await _release(spent)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Release what is held at the end of the block. The first error wins; one of the release is added as a note."""
        try:
            yield
        except BaseException as first:
            await _undo(first, self.release())
            raise
        await to_the_end(self.release())

    async def release(self) -> None:
        """Take back what is held. Idempotent. Raises SiteError."""
        await _release((held.site, held.lease) for held in self._held)
        self._held = []

    async def _recycled(self, lender: Lender, until: datetime) -> Lease | None:
        """The lease that is held of the same site with the same settings, handed on; None if there is none, if its
        nodes would end before the start does, or if it cannot fulfil the request."""
        held = next((held for held in self._held if held.section == lender.section), None)
        if held is None or not isinstance(held.site, Reuses) or not self._lasts(held):
            return None
        recycled = await held.site.recycle(held.lease, lender.request, until)
        if recycled is not None:
            self._held.remove(held)
        return recycled

    def _lasts(self, held: _Held) -> bool:
        """Whether the nodes of a lease live long enough for another start like its last one."""
        if not isinstance(held.site, Rents):
            return True
        lived_s = self._clock() - self._lent_s[held.lease.id]
        return lived_s + NEXT_START * held.took_s <= held.site.most_hours * SECONDS_PER_HOUR


async def _undo(first: BaseException, clean_up: Coroutine[Any, Any, None]) -> None:
    """Clean up after an error; what goes wrong is added to it as a note."""
    try:
        await to_the_end(clean_up)
    except SteelyardError as second:
        first.add_note(f"while the lease was taken back: {second.message}")


async def _release(leases: Iterable[tuple[Site, Lease]]) -> None:
    """Take leases back, each even if another cannot be. Raises the first error, with the others as notes."""
    errors = [error for error in await together(_attempt(site, lease) for site, lease in leases) if error is not None]
    for error in errors[1:]:
        errors[0].add_note(error.message)
    if errors:
        raise errors[0]


async def _attempt(site: Site, lease: Lease) -> SteelyardError | None:
    try:
        await site.release(lease)
    except SteelyardError as error:
        return error
    return None


def _unreachable(lease: Lease) -> str | None:
    """A database that listens where a load node cannot be, by their addresses and kernels."""
    for node in lease.databases:
        away = next((loader for loader in lease.loaders if loader.kernel != node.kernel), None)
        if away is not None and is_loopback(node.address):
            return f"{node.name} has the address {node.address}, which only its own machine reaches, not {away.name}"
    return None


def _section(settings: TrialSettings, section: str) -> str:
    """A site's settings without the numbers of nodes, which a request says."""
    table = settings.part(section)[section]
    return canonical({section: {name: value for name, value in table.items() if name not in ("nodes", "load_nodes")}})
