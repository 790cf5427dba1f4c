"""A conductor that lends instances, hands them on, extends their lease and gives it back, for tests that kill it."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

from steelyard.leases.records import utc_now
from steelyard.site.base import Request
from steelyard.site.ec2 import Settings, create


def soon() -> datetime:
    """End of a lease."""
    return utc_now() + timedelta(minutes=30)


async def rent(state: Path, settings: Settings) -> None:
    """Do each step of a lease."""
    site, request = create(settings, state), Request("renting", 2, 0)
    lease = await site.lease(request, soon())
    lease = await site.recycle(lease, request, soon()) or lease
    await site.extend(lease, ["n3"], lambda node, step: None)
    await site.release(lease)


if __name__ == "__main__":
    asyncio.run(rent(Path(sys.argv[1]), Settings.model_validate(json.loads(sys.argv[2]))))
