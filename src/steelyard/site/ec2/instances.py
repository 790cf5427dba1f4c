"""Instances: the words that launch them, their tags, the scripts that they run when they boot, and what EC2 says of
them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any, Final

from steelyard.leases.records import ID_PATTERN
from steelyard.model.errors import SiteError
from steelyard.node.base import Node
from steelyard.site.ec2.cloud import Answer, Cloud, pauses
from steelyard.site.ec2.settings import Settings

LEASE: Final = "steelyard:lease"
NODE: Final = "steelyard:node"
OWNER: Final = "steelyard:owner"
UNTIL: Final = "steelyard:until"
GONE: Final = frozenset({"shutting-down", "terminated"})
LOOK_S: Final = 15
"""Seconds between two looks of an instance at its end."""
KNOWN_S: Final = 30.0
"""Seconds after which every call knows what another one has launched."""
GRACE_S: Final = 600
"""Seconds by which an instance outlives its lease, whose conductor should have ended it."""
END_FOLDER: Final = "/var/lib/cloud/instance/steelyard"
"""Folder of an instance, and of none that is made from its image. `end`: time at which it ends, in seconds. `booted`:
the clock when it booted, from which time goes on by its uptime, so that a clock that is put right ends nothing."""
UPTIME: Final = "cut -d . -f 1 /proc/uptime"
NOW: Final = f"$(cat {END_FOLDER}/booted) + $({UPTIME})"
EVERY_BOOT: Final = f"""\
#!/bin/sh
mkdir -p {END_FOLDER}
echo "$(( $(date +%s) - $({UPTIME}) ))" > {END_FOLDER}/booted
[ -e {END_FOLDER}/end ] || echo "$(( {NOW} + {{seconds}} ))" > {END_FOLDER}/end
nohup sh -c 'while [ "$(( {NOW} ))" -lt "$(cat {END_FOLDER}/end)" ]; do sleep {LOOK_S}; done; shutdown -P now' \\
  > /dev/null 2>&1 < /dev/null &
"""
"""Ends the instance without its conductor, also after it has rebooted."""
FIRST_BOOT: Final = f"""\
#!/bin/sh
umask 077
chown -R {{user}} {END_FOLDER}
cat > /etc/ssh/ssh_host_ed25519_key << 'END'
{{machine_key}}
END
ssh-keygen -y -f /etc/ssh/ssh_host_ed25519_key > /etc/ssh/ssh_host_ed25519_key.pub
home=$(getent passwd {{user}} | cut -d : -f 6)
mkdir -p "$home/.ssh"
echo '{{public_key}}' >> "$home/.ssh/authorized_keys"
chown -R {{user}} "$home/.ssh"
systemctl restart ssh || systemctl restart sshd
"""
"""Lets the user of the lease put the end off, and brings the lease's keys."""
RENEW: Final = f'echo "$(( {NOW} + $1 ))" > {END_FOLDER}/new && mv {END_FOLDER}/new {END_FOLDER}/end'
"""Argument: seconds until the end."""


@dataclass(frozen=True)
class Image:
    """An AMI and its volumes."""

    id: str
    root: str
    """Device of the root volume."""
    volumes: Mapping[str, int]
    """Size of each volume in GiB, by device."""


@dataclass(frozen=True)
class Instance:
    """An instance as EC2 describes it."""

    id: str
    state: str
    reason: str
    """Reason of EC2 for the state; empty if there is none."""
    tags: Mapping[str, str]
    private: str
    public: str
    facts: Mapping[str, str]

    @property
    def node(self) -> str:
        """Name of its node."""
        return self.tags.get(NODE, "")

    @property
    def ended(self) -> str:
        """Its end in words; empty while it lives."""
        why = f": {self.reason}" if self.reason else ""
        return f"instance {self.id} of {self.node} is {self.state}{why}" if self.state in GONE else ""


def tags(lease: str, owner: str, until: str, node: str = "") -> list[dict[str, str]]:
    """Tags of everything that is created for a lease."""
    values = {LEASE: lease, OWNER: owner, UNTIL: until, NODE: node, "Name": f"steelyard {lease} {node}".rstrip()}
    return [{"Key": key, "Value": value} for key, value in values.items() if value]


def first_boot(user: str, machine_key: str, public_key: str) -> str:
    """Script of the first boot of an instance that becomes a node."""
    return FIRST_BOOT.format(user=user, machine_key=machine_key.strip(), public_key=public_key)


def user_data(seconds: float, script: str) -> str:
    """Words for cloud-init, which ends an instance after these seconds, unless that is put off, and also if it has
    rebooted; the script is run at its first boot."""
    parts = MIMEMultipart(boundary="steelyard")
    parts.attach(MIMEText(EVERY_BOOT.format(seconds=round(seconds)), "cloud-boothook"))
    parts.attach(MIMEText(script, "x-shellscript"))
    return parts.as_string()


def launch_words(
    settings: Settings, image: Image, node: Node, lease: str, own_tags: list[dict[str, str]], script: str
) -> dict[str, Any]:
    """The request for one instance. The same request again launches nothing again: its token is lease and node."""
    volumes: dict[str, dict[str, Any]] = {
        device: {"DeleteOnTermination": True, "VolumeSize": size_gb} for device, size_gb in image.volumes.items()
    }
    chosen = {"VolumeType": settings.volume_type, "VolumeSize": settings.volume_gb, "Iops": settings.volume_iops}
    volumes[image.root] |= {name: value for name, value in chosen.items() if value is not None}
    words: dict[str, Any] = {
        "ClientToken": f"{lease}-{node.name}",
        "ImageId": image.id,
        "InstanceType": settings.types[node.role],
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": script,
        "MetadataOptions": {"HttpTokens": "required"},
        "BlockDeviceMappings": [{"DeviceName": device, "Ebs": volume} for device, volume in volumes.items()],
        "TagSpecifications": [{"ResourceType": kind, "Tags": own_tags} for kind in ("instance", "volume")],
    }
    optional = {
        "SubnetId": settings.subnet_id,
        "SecurityGroupIds": list(settings.security_group_ids),
        "KeyName": settings.key_name,
        "Placement": {"GroupName": settings.placement_group} if settings.placement_group else None,
        "CreditSpecification": {"CpuCredits": settings.credit} if settings.credit else None,
        "InstanceMarketOptions": {"MarketType": "spot"} if settings.market == "spot" else None,
    }
    return words | {name: value for name, value in optional.items() if value}


async def of_tag(cloud: Cloud, key: str, value: str) -> list[Instance]:
    """Every instance with a tag, also those that have ended a short time ago. Raises SiteError."""
    return parsed(await cloud.ask("describe_instances", Filters=[tagged(key, value)]))


async def end_these(cloud: Cloud, ids: Sequence[str]) -> None:
    """Terminate instances by their ids, which EC2 may not know yet. Raises SiteError."""
    for pause_s in pauses(KNOWN_S):
        try:
            await cloud.ask("terminate_instances", InstanceIds=list(ids))
        except SiteError as error:
            if "InvalidInstanceID.NotFound" not in error.message:
                raise
            await asyncio.sleep(pause_s)
        else:
            return


async def end(cloud: Cloud, lease: str) -> None:
    """Terminate the instances of a lease, and delete its volumes that belong to none. Idempotent. Raises SiteError."""
    alive = [one.id for one in await of_tag(cloud, LEASE, lease) if one.state not in GONE]
    if alive:
        await cloud.ask("terminate_instances", InstanceIds=alive)
    for volume in await _loose_volumes(cloud, LEASE, lease):
        await cloud.ask("delete_volume", VolumeId=volume["VolumeId"])


async def leases_of(cloud: Cloud, owner: str) -> set[str]:
    """Leases of an owner that have an instance, or a volume that belongs to none. Raises SiteError."""
    alive = [one.tags for one in await of_tag(cloud, OWNER, owner) if one.state not in GONE]
    loose = [_tags(volume) for volume in await _loose_volumes(cloud, OWNER, owner)]
    return {tags[LEASE] for tags in (*alive, *loose) if ID_PATTERN.fullmatch(tags.get(LEASE, ""))}


async def _loose_volumes(cloud: Cloud, key: str, value: str) -> list[Answer]:
    unattached = {"Name": "status", "Values": ["available"]}
    return list((await cloud.ask("describe_volumes", Filters=[tagged(key, value), unattached]))["Volumes"])


def tagged(key: str, value: str) -> dict[str, Any]:
    """The filter for a tag."""
    return {"Name": f"tag:{key}", "Values": [value]}


def parsed(answer: Answer) -> list[Instance]:
    """The instances of an answer of EC2."""
    every = [entry for group in answer.get("Reservations", ()) for entry in group.get("Instances", ())]
    return [_instance(entry) for entry in every]


def _instance(entry: Mapping[str, Any]) -> Instance:
    facts = {
        "ec2_instance": entry["InstanceId"],
        "ec2_instance_type": entry.get("InstanceType", ""),
        "ec2_image": entry.get("ImageId", ""),
        "ec2_zone": entry.get("Placement", {}).get("AvailabilityZone", ""),
        "ec2_placement_group": entry.get("Placement", {}).get("GroupName", ""),
        "ec2_market": entry.get("InstanceLifecycle", "on-demand"),
    }
    return Instance(
        id=entry["InstanceId"],
        state=entry["State"]["Name"],
        reason=entry.get("StateReason", {}).get("Message", ""),
        tags=_tags(entry),
        private=entry.get("PrivateIpAddress", ""),
        public=entry.get("PublicIpAddress", ""),
        facts={name: text for name, text in facts.items() if text},
    )


def _tags(entry: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in entry.get("Tags", ())}
