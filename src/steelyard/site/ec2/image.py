"""The AMI of nodes: the one that settings name, or one that is baked once in a region.

The builder installs what nodes need and switches itself off. It stops only when all of it worked, so that what is made
an image is whole.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.node.tasks import to_the_end
from steelyard.site.ec2 import checks
from steelyard.site.ec2.cloud import Answer, Cloud, pauses
from steelyard.site.ec2.instances import Image, parsed
from steelyard.site.ec2.settings import BAKED, Settings

DEBIAN: Final = "136693071363"
"""Account in which Debian publishes its images."""
NAMES: Final = {"x86_64": "amd64", "arm64": "arm64"}
SCRIPT: Final = """\
#!/bin/sh
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends openjdk-17-jre-headless
apt-get clean
systemctl disable --now apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service || true
cloud-init clean --logs
shutdown -P now
"""
"""Timers that would install packages in the middle of a trial are off."""
BAKE_TIMEOUT_S: Final = 1800.0


def name_of(architecture: str) -> str:
    """Name of the baked image for an architecture: another script, another image."""
    return f"steelyard-debian-12-{NAMES[architecture]}-{hashlib.sha256(SCRIPT.encode()).hexdigest()[:12]}"


async def of_settings(cloud: Cloud, settings: Settings, architecture: str) -> Image | None:
    """The AMI of the nodes; None if it must be baked first. Raises SiteError."""
    if settings.image == BAKED:
        named = [{"Name": "name", "Values": [name_of(architecture)]}]
        answer = await cloud.ask("describe_images", Owners=["self"], Filters=named)
        entry = next(iter(answer["Images"]), None)
        if entry is not None and entry.get("State") != "available":
            # Another conductor, perhaps a dead one, has begun to create it. EC2 finishes it anyway.
            await _until(functools.partial(_available, cloud, entry["ImageId"]), f"image {entry['ImageId']} is pending")
    else:
        entry = _only(await cloud.ask("describe_images", ImageIds=[settings.image]), settings.image)
    if entry is None:
        return None
    fitting = _image(entry)
    checks.image_fits(settings, fitting, str(entry.get("Architecture", architecture)), architecture)
    return fitting


async def base(cloud: Cloud, architecture: str) -> Image:
    """Debian's newest image. Raises SiteError."""
    pattern = f"debian-12-{NAMES[architecture]}-*"
    answer = await cloud.ask("describe_images", Owners=[DEBIAN], Filters=[{"Name": "name", "Values": [pattern]}])
    newest = sorted(answer["Images"], key=lambda entry: str(entry.get("CreationDate", "")))[-1:]
    return _image(_only({"Images": newest}, pattern))


async def bake(cloud: Cloud, words: dict[str, Any], name: str, tags: list[dict[str, str]]) -> Image:
    """The image of an instance that is launched with these words and stops when it is ready. Raises SiteError."""
    answers: list[Answer] = []

    async def launch() -> None:
        answers.append(await cloud.ask("run_instances", **words))

    await to_the_end(launch())
    builder = str(answers[0]["Instances"][0]["InstanceId"])
    await _until(lambda: _stopped(cloud, builder), f"the image's builder {builder} has not installed everything")
    kinds = [{"ResourceType": kind, "Tags": tags} for kind in ("image", "snapshot")]
    baked = await cloud.ask("create_image", InstanceId=builder, Name=name, TagSpecifications=kinds)
    await _until(lambda: _available(cloud, baked["ImageId"]), f"image {baked['ImageId']} is not available")
    return _image(_only(await cloud.ask("describe_images", ImageIds=[baked["ImageId"]]), baked["ImageId"]))


async def _until(reached: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    for pause_s in pauses(BAKE_TIMEOUT_S):
        if await reached():
            return
        await asyncio.sleep(pause_s)
    raise SiteError(f"{otherwise} in {BAKE_TIMEOUT_S:g} s", "its console output says why: get-console-output")


async def _stopped(cloud: Cloud, builder: str) -> bool:
    named = [{"Name": "instance-id", "Values": [builder]}]
    every = parsed(await cloud.ask("describe_instances", Filters=named))
    if ended := next((one.ended for one in every if one.ended), ""):
        raise SiteError(ended)
    return any(one.state == "stopped" for one in every)


async def _available(cloud: Cloud, image: str) -> bool:
    state = _only(await cloud.ask("describe_images", ImageIds=[image]), image)["State"]
    if state not in ("pending", "available"):
        raise SiteError(f"image {image} is {state}", "deregister it, and try again")
    return bool(state == "available")


def _only(answer: Answer, wanted: str) -> dict[str, Any]:
    for entry in answer["Images"]:
        return dict(entry)
    raise LastingSiteError(f"EC2 has no image {wanted} in this region", "site.image")


def _image(entry: dict[str, Any]) -> Image:
    volumes = {one["DeviceName"]: int(one["Ebs"]["VolumeSize"]) for one in entry["BlockDeviceMappings"] if "Ebs" in one}
    return Image(str(entry["ImageId"]), str(entry["RootDeviceName"]), volumes)
