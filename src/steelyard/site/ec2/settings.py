"""Settings of site `ec2`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from steelyard.model.value import Value

BAKED = "baked"
BURSTABLE = ("t2.", "t3.", "t3a.", "t4g.")


class Settings(Value):
    """Settings under `[site]` in a study, in addition to `name`, `nodes` and `load_nodes`. Each can be a factor, such
    as `site.instance_type`. Credentials are found by boto3 and are never settings. Prices are in `[cost]`."""

    region: str = Field(default="", pattern=r"^([a-z]{2}(-[a-z0-9]+)+-[0-9])?$")
    """Region, such as eu-north-1; empty: that which boto3 finds in the environment or the user's configuration."""
    instance_type: str = Field(default="m5.large", pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")
    """Type of the instances of database nodes."""
    load_instance_type: str = Field(default="", pattern=r"^([a-z0-9-]+\.[a-z0-9-]+)?$")
    """Type of those of load nodes; empty: `instance_type`."""
    image: str = Field(default=BAKED, pattern=r"^(baked|ami-[0-9a-f]+)$")
    """AMI of all nodes. baked: one that Steelyard makes once in the region from Debian 12 and a Java runtime, by
    `steelyard setup ec2` or by the first lease."""
    user: str = Field(default="admin", pattern=r"^[a-z_][a-z0-9_-]*$")
    """User of the AMI to log in as: admin on Debian, ubuntu on Ubuntu, ec2-user on Amazon Linux."""
    subnet_id: str = Field(default="", pattern=r"^(subnet-[0-9a-f]+)?$")
    """Subnet of all nodes; empty: EC2's default."""
    security_group_ids: tuple[str, ...] = ()
    """Security groups of all nodes. They must let in ssh from this machine, and everything from each other; empty: the
    default group."""
    reach: Literal["public", "private"] = "public"
    """Address by which this machine reaches instances. Nodes reach each other by their private ones."""
    key_name: str = ""
    """Key pair of EC2 for ssh, with `key_file`; empty: each lease makes a pair of its own."""
    key_file: str = ""
    """Private part of `key_name`, relative to the study."""
    placement_group: str = ""
    """Placement group in which instances are launched."""
    market: Literal["on-demand", "spot"] = "on-demand"
    """spot: cheaper, and ended by EC2 when it likes, which voids the trial in progress."""
    volume_type: Literal["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"] = "gp3"
    """Type of the root volume, which has the data."""
    volume_gb: int | None = Field(default=None, ge=1)
    """Size of the root volume in GiB; otherwise that of the AMI."""
    volume_iops: int | None = Field(default=None, ge=100)
    """Operations per second that the root volume is provisioned for."""
    credit: Literal["", "standard", "unlimited"] = ""
    """CPU credits of burstable types (t2, t3, t4g): standard: slow once they are spent; unlimited: spent beyond the
    balance, for money; empty: EC2's default for the type."""
    most_hours: float = Field(default=4.0, gt=0, le=168)
    """Hours after which the instances of a lease end, whatever happens. A lease that is handed on to the next start
    does not live longer."""

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        if bool(self.key_name) != bool(self.key_file):
            raise ValueError("key_name and key_file belong together: give both or none")
        if self.volume_iops is not None and self.volume_type not in ("gp3", "io1", "io2"):
            raise ValueError(f"volume_iops is for gp3, io1 and io2, not {self.volume_type}")
        return self

    @property
    def types(self) -> dict[str, str]:
        """Type of instance by role."""
        return {"database": self.instance_type, "load": self.load_instance_type or self.instance_type}
