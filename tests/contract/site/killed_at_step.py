"""A conductor that is killed at a step of lending, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from steelyard.leases import records as lease_records
from steelyard.leases.steps import Step
from steelyard.model.value import Value
from steelyard.site import docker, local, vm
from steelyard.site.base import Request

ROOT = Path(__file__).resolve().parents[3]
SITES = {"local": local.LocalSite, "docker": docker.DockerSite, "vm": vm.VmSite}
SETTINGS = {"local": local.Settings, "docker": docker.Settings, "vm": vm.Settings}
TIMEOUT_S = 300.0
"""Virtual machines boot slowly where they are emulated."""

SiteName = Literal["local", "docker", "vm"]
Moment = Literal["before", "after"]


def kill_at(
    step: str, site: SiteName, settings: Value, request: Request, state: Path, moment: Moment = "after"
) -> None:
    """Have a site lend in a process that is killed before or after a step."""
    asked = TypeAdapter(Request).dump_json(request).decode()
    argv = [sys.executable, "-m", __name__, step, moment, site, settings.model_dump_json(), asked, str(state)]
    assert subprocess.run(argv, timeout=TIMEOUT_S, check=False, cwd=ROOT).returncode == -signal.SIGKILL


def _be_killed(at: str, moment: str, name: SiteName, settings: str, asked: str, state: str) -> None:
    async def perform(step: Step) -> None:
        if (step.name, moment) == (at, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        await step.act()
        if step.name == at:
            os.kill(os.getpid(), signal.SIGKILL)

    site = SITES[name](SETTINGS[name].model_validate_json(settings), Path(state), perform)  # type: ignore[arg-type]
    request = TypeAdapter(Request).validate_json(asked)
    asyncio.run(site.lease(request, lease_records.utc_now() + timedelta(hours=1)))


if __name__ == "__main__":
    _be_killed(*sys.argv[1:])  # type: ignore[arg-type]
