"""Mistakes of a request to EC2, which are found before anything costs money: every call here only reads."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any, Final

from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.site.base import Refusal, Request
from steelyard.site.ec2.cloud import Cloud
from steelyard.site.ec2.instances import Image
from steelyard.site.ec2.settings import Settings

QUOTA: Final = "L-1216C47A"
"""Service quota of vCPUs of on-demand instances of the families in STANDARD."""
STANDARD: Final = frozenset("acdhimrtz")
say = logging.getLogger(__name__).info


def key_file_refusal(settings: Settings) -> Refusal | None:
    """Reason why ssh cannot use the key's file, or None."""
    if not settings.key_file:
        return None
    path = Path(settings.key_file).expanduser()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return Refusal(f"cannot read {path}: {error.strerror}", "site.key_file")
    if mode & 0o077:
        what = f"others may read {path} (mode {mode:o}), so that ssh refuses it"
        return Refusal(what, "site.key_file", f"chmod 600 {path}")
    return None


async def architecture(cloud: Cloud, settings: Settings, request: Request | None = None) -> str:
    """Architecture that the wanted types have, as AMIs name it. With a request, all that it names must exist in the
    region, fit together and be within the quota. Raises SiteError."""
    names = sorted(set(settings.types.values()))
    answer = await cloud.ask("describe_instance_types", InstanceTypes=names)
    types = {entry["InstanceType"]: entry for entry in answer["InstanceTypes"]}
    if missing := [name for name in names if name not in types]:
        raise LastingSiteError(f"EC2 in {cloud.region} has no {missing[0]}", "site.instance_type")
    known = [set(entry["ProcessorInfo"]["SupportedArchitectures"]) for entry in types.values()]
    common = set.intersection(*known) & {"x86_64", "arm64"}
    if not common:
        raise LastingSiteError(f"{' and '.join(names)} have no architecture in common", "site.load_instance_type")
    if request is not None:
        await _of_region(cloud, settings)
        await _of_quota(cloud, settings, request, {name: entry["VCpuInfo"] for name, entry in types.items()})
    return "x86_64" if "x86_64" in common else "arm64"


def image_fits(settings: Settings, image: Image, is_for: str, architecture: str) -> None:
    """Check an AMI for one architecture. Raises LastingSiteError."""
    if is_for != architecture:
        types = " and ".join(sorted(set(settings.types.values())))
        raise LastingSiteError(f"{image.id} is for {is_for}, which {types} is not", "site.image")
    least_gb = image.volumes.get(image.root, 0)
    if settings.volume_gb is not None and settings.volume_gb < least_gb:
        what = f"{image.id} needs {least_gb} GiB, and site.volume_gb is {settings.volume_gb}"
        raise LastingSiteError(what, f"site.volume_gb = {least_gb}, or leave it out")


async def _of_region(cloud: Cloud, settings: Settings) -> None:
    """Check that all is there that settings name. Raises SiteError."""
    if settings.subnet_id:
        (subnet,) = (await cloud.ask("describe_subnets", SubnetIds=[settings.subnet_id]))["Subnets"]
        if settings.reach == "public" and not subnet.get("MapPublicIpOnLaunch"):
            raise LastingSiteError(
                f"instances in {settings.subnet_id} get no public address",
                'another site.subnet_id, or site.reach = "private" where this machine reaches private addresses',
            )
    if settings.security_group_ids:
        await cloud.ask("describe_security_groups", GroupIds=list(settings.security_group_ids))
    if settings.key_name:
        await cloud.ask("describe_key_pairs", KeyNames=[settings.key_name])
    if settings.placement_group:
        await cloud.ask("describe_placement_groups", GroupNames=[settings.placement_group])


async def _of_quota(cloud: Cloud, settings: Settings, request: Request, types: dict[str, Any]) -> None:
    """Compare the wanted vCPUs with the quota, where it is known. Raises LastingSiteError."""
    counts = {"database": request.database_nodes, "load": request.load_nodes}
    standard = {role: name for role, name in settings.types.items() if name[0] in STANDARD}
    wanted = sum(counts[role] * int(types[name]["DefaultVCpus"]) for role, name in standard.items())
    if settings.market == "spot" or not wanted:
        return
    try:
        answer = await cloud.ask(
            "get_service_quota", service="service-quotas", ServiceCode="ec2", QuotaCode=QUOTA
        )  # fmt: skip
    except SiteError as error:
        say("the quota of vCPUs is not known: %s", error.message)
        return
    most = float(answer["Quota"]["Value"])
    if wanted > most:
        raise LastingSiteError(
            f"the nodes need {wanted} vCPUs, and the quota of this account in {cloud.region} is {most:g}",
            "fewer or smaller instances, or ask AWS for a higher quota (Service Quotas, EC2)",
        )
