"""The lease that a study holds: taken for a start, given back after it, or handed on where the site can."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from steelyard.judging.settings_hash import canonical
from steelyard.leases.lease import Lease
from steelyard.model.errors import SteelyardError
from steelyard.model.trial_settings import TrialSettings
from steelyard.node.tasks import to_the_end
from steelyard.site.base import Request, Reuses, Site


class Lending:
    """Holds at most one lease between two starts."""

    def __init__(self) -> None:
        self._held: tuple[str, Site, Lease] | None = None

    async def lend(self, site: Site, settings: TrialSettings, request: Request, until: datetime) -> Lease:
        """Nodes for a start: those of the lease that is held, if they can fulfil the request; otherwise that lease is
        released first. Raises SiteError."""
        section = _section(settings)
        if self._held is not None:
            held_section, holder, lease = self._held
            if held_section == section and isinstance(holder, Reuses):
                recycled = await holder.recycle(lease, request, until)
                if recycled is not None:
                    self._held = None
                    return recycled
            await self.release()
        return await site.lease(request, until)

    async def give_back(self, site: Site, settings: TrialSettings, lease: Lease, *, keep: bool) -> None:
        """Take a lease back after its start; `keep`: hold it for the next one if the site can hand it on. Raises
        SiteError."""
        if keep and isinstance(site, Reuses):
            self._held = (_section(settings), site, lease)
        else:
            await site.release(lease)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Release what is held at the end of the block. The first error wins; one of the release is added as a
        note."""
        try:
            yield
        except BaseException as first:
            try:
                await to_the_end(self.release())
            except SteelyardError as second:
                first.add_note(f"while the lease was taken back: {second.message}")
            raise
        await to_the_end(self.release())

    async def release(self) -> None:
        """Take back what is held. Idempotent. Raises SiteError."""
        if self._held is not None:
            _, site, lease = self._held
            await site.release(lease)
            self._held = None


def _section(settings: TrialSettings) -> str:
    """The site's settings without the numbers of nodes, which a request says."""
    section = settings.part("site")["site"]
    return canonical({name: value for name, value in section.items() if name not in ("nodes", "load_nodes")})
