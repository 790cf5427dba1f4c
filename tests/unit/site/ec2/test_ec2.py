"""Site `ec2` against moto in this process: what is asked of EC2, and every mistake before anything costs money."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import timedelta
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.leases import records as lease_records
from steelyard.leases.identity import keep, known_state_id, state_id
from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.node.base import Node
from steelyard.site.base import Request
from steelyard.site.ec2 import Ec2Site, Settings, checks, create, image, instances
from steelyard.site.ec2.cloud import Answer, Cloud, pauses
from steelyard.site.ec2.instances import Image
from steelyard.site.ec2.launch import Launch
from steelyard.site.ec2.site import REGIONS, regions

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto")

REGION, AMI = "eu-north-1", "ami-12c6146b"
REQUEST = Request("renting", 2, 1)
NODE = Node("n1", "database", "", (), Path("n1"), commands=False)


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an account that is empty."""
    with moto.mock_aws():
        yield boto3.client("ec2", region_name=REGION)


def site(state: Path, **settings: object) -> Ec2Site:
    return create(Settings.model_validate({"region": REGION, "image": AMI, **settings}), state)


def refused(state: Path, request: Request = REQUEST, **settings: object) -> SiteError:
    """The error of a lease before which nothing was launched and nothing written."""
    with pytest.raises(SiteError) as error:
        asyncio.run(site(state, **settings).lease(request, lease_records.utc_now() + timedelta(minutes=5)))
    assert lease_records.records(state) == []
    assert regions(state) == []
    return error.value


def test_a_launch_says_whose_it_is_and_that_it_goes_with_its_volumes() -> None:
    settings = Settings(
        instance_type="t2.medium", subnet_id="subnet-1", volume_gb=30, volume_iops=3000, credit="standard",
        market="spot", placement_group="near", security_group_ids=("sg-1",),
    )  # fmt: skip
    own = instances.tags("5eedbee1", "0123", "2026-11-29T12:00:00+00:00", "n1")
    two = Image(AMI, "/dev/xvda", {"/dev/xvda": 8, "/dev/sdb": 100})
    words = instances.launch_words(settings, two, NODE, "5eedbee1", own, "#!/bin/sh")
    assert words["ClientToken"] == "5eedbee1-n1"
    assert words["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert [kind["ResourceType"] for kind in words["TagSpecifications"]] == ["instance", "volume"]
    assert {tag["Key"] for tag in own} == {
        "steelyard:lease",
        "steelyard:owner",
        "steelyard:until",
        "steelyard:node",
        "Name",
    }
    assert words["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {
            "DeleteOnTermination": True, "VolumeType": "gp3", "VolumeSize": 30, "Iops": 3000,
        }},
        {"DeviceName": "/dev/sdb", "Ebs": {"DeleteOnTermination": True, "VolumeSize": 100}},
    ]  # fmt: skip
    assert words["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert words["CreditSpecification"] == {"CpuCredits": "standard"}


def test_an_instance_ends_after_a_time_whatever_its_clock_says_later_and_at_every_boot() -> None:
    script = instances.first_boot("admin", "KEY\n", "ssh-ed25519 AAAA")
    assert "shutdown" not in script
    every, first = message_from_string(instances.user_data(4200.4, script)).get_payload()  # type: ignore[misc]
    assert (every.get_content_type(), first.get_content_type()) == ("text/cloud-boothook", "text/x-shellscript")
    assert first.get_payload() == script
    assert "/proc/uptime) + 4200 ))" in every.get_payload()
    assert "shutdown -P now" in every.get_payload()
    assert instances.user_data(1, script) == instances.user_data(1, script)  # a repeated call is the same


@pytest.mark.parametrize(("settings", "message"), [
    ({"key_name": "mine"}, "key_name and key_file belong together"),
    ({"volume_iops": 3000, "volume_type": "gp2"}, "volume_iops is for gp3, io1 and io2, not gp2"),
    ({"image": "debian"}, "pattern"),
    ({"access_key": "x"}, "Extra inputs"),
])  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(settings)


@pytest.mark.parametrize(("settings", "message"), [
    ({"instance_type": "m5.tiny"}, "m5.tiny"),
    ({"load_instance_type": "m6g.large"}, "m5.large and m6g.large have no architecture in common"),
    ({"instance_type": "m6g.large"}, f"{AMI} is for x86_64, which m6g.large is not"),
    ({"image": "ami-00000000"}, "ami-00000000"),
    ({"subnet_id": "subnet-0123"}, "subnet-0123"),
    ({"security_group_ids": ["sg-0123"]}, "sg-0123"),
    ({"volume_gb": 1}, r"needs \d+ GiB, and site.volume_gb is 1"),
])  # fmt: skip
def test_what_the_region_does_not_have(ec2: Any, tmp_path: Path, settings: dict[str, object], message: str) -> None:
    error = refused(tmp_path, **settings)
    assert isinstance(error, LastingSiteError)
    assert error.hint
    with pytest.raises(SiteError, match=message):
        raise error


def test_a_subnet_of_another_region(ec2: Any, tmp_path: Path) -> None:
    there = boto3.client("ec2", region_name="us-east-1").describe_subnets()["Subnets"][0]["SubnetId"]
    assert "a subnet is in one region only" in refused(tmp_path, subnet_id=there).hint


def test_a_subnet_without_public_addresses(ec2: Any, tmp_path: Path) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    assert "get no public address" in refused(tmp_path, subnet_id=subnet).message


class OfFive(Cloud):
    """An account that may have 5 vCPUs; moto has no quotas of EC2."""

    def call(self, operation: str, service: str = "ec2", **words: Any) -> Answer:
        if service == "service-quotas":
            assert words == {"ServiceCode": "ec2", "QuotaCode": checks.QUOTA}
            return {"Quota": {"Value": 5.0}}
        return super().call(operation, service, **words)


def test_more_processors_than_the_quota(ec2: Any) -> None:
    settings = Settings(region=REGION, image=AMI)
    with pytest.raises(LastingSiteError, match=f"need 6 vCPUs, and the quota of this account in {REGION} is 5"):
        asyncio.run(checks.architecture(OfFive(REGION), settings, REQUEST))
    smaller = Request("renting", 1, 1)
    assert asyncio.run(checks.architecture(OfFive(REGION), settings, smaller)) == "x86_64"
    assert asyncio.run(checks.architecture(Cloud(REGION), settings, REQUEST)) == "x86_64"


def test_a_key_that_others_may_read(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("x")
    key.chmod(0o644)
    reason = site(tmp_path, key_name="mine", key_file=str(key)).refuse(REQUEST, None)
    assert reason == f"others may read {key} (mode 644), so that ssh refuses it"
    assert (reason.key, reason.hint) == ("site.key_file", f"chmod 600 {key}")  # type: ignore[union-attr]
    key.chmod(0o600)
    assert site(tmp_path, key_name="mine", key_file=str(key)).refuse(REQUEST, None) is None


def test_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the machine either: nothing is asked of any network."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    error = refused(tmp_path)
    assert error.message == f"boto3 finds no credentials for EC2 in {REGION}"
    assert "aws configure" in error.hint


def test_credentials_are_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHETEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(SiteError, match="does not answer") as error:
        Cloud(REGION, attempts=1).call("describe_instances")
    assert "secret-of-the-test" not in repr(error.value.args) + error.value.message
    assert "AKIAOFTHETEST" not in error.value.message


def test_no_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refused(tmp_path, region="").message == "boto3 finds no region"


def test_without_boto3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    error = refused(tmp_path)
    assert (error.message, error.hint) == ("site ec2 needs boto3", "pip install 'steelyard[ec2]'")


def test_nothing_is_asked_where_nothing_was_launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clean` and `check` on a machine without boto3."""
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    ours = site(tmp_path)
    assert asyncio.run(ours.leftovers()) == []
    assert ours.refuse(REQUEST, None) is None
    assert "100 nodes" not in str(ours.refuse(Request("renting", 99, 1), None))
    assert "at most 100" in str(ours.refuse(Request("renting", 100, 1), None))


def test_notes_say_what_is_launched(tmp_path: Path) -> None:
    plain = site(tmp_path).notes(REQUEST)
    what = f"2 instances of m5.large and 1 instance of m5.large in {REGION}"
    assert plain == [f"a start launches {what}; they end after 4 h at the latest"]
    asked = {"region": "", "image": "baked", "instance_type": "t2.medium", "market": "spot"}
    special = site(tmp_path, **asked).notes(Request("renting", 1, 0))
    assert [words in sentence for words, sentence in zip(
        ("in the region that boto3 finds", "bakes an image", "spot", "CPU credits"), special, strict=True
    )] == [True] * 4  # fmt: skip


def test_an_instance_that_never_runs(ec2: Any, tmp_path: Path) -> None:
    """And one that ends instead."""
    record = lease_records.Record(
        id="5eedbee1", site="ec2", study="renting", owner=lease_records.owner(), created=lease_records.utc_now(),
        until=lease_records.utc_now(), nodes=(NODE,),
    )  # fmt: skip
    lease_records.make_nodes_folder(tmp_path, record.id)
    settings = Settings(region=REGION, image=AMI, reach="private")
    small = Image(AMI, "/dev/sda1", {"/dev/sda1": 8})
    launch = Launch(Cloud(REGION), settings, tmp_path, record, small, "0123", 60, run_timeout_s=1)
    stranger = Node("n2", "database", "", (), Path("n2"), commands=False)
    asyncio.run(launch.make_keys())
    asyncio.run(launch.ask_for([NODE]))
    with pytest.raises(SiteError, match=r"not running with private addresses in 1 s: n2 \(unknown\)"):
        asyncio.run(launch.running([NODE, stranger]))
    (instance,) = asyncio.run(instances.of_tag(Cloud(REGION), instances.LEASE, record.id))
    ec2.terminate_instances(InstanceIds=[instance.id])
    with pytest.raises(SiteError, match=f"instance {instance.id} of n1 is terminated"):
        asyncio.run(launch.running([NODE]))


def test_an_image_is_baked_once(ec2: Any, tmp_path: Path) -> None:
    """The builder stops by itself when it is done; here, the test stops it."""
    base = ec2.register_image(
        Name="debian-12-amd64-20260101", Architecture="x86_64", RootDeviceName="/dev/xvda",
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}],
    )  # fmt: skip
    own = instances.tags("", "0123", "")

    class Plain(Cloud):
        """Moto tags no snapshots of an image."""

        def call(self, operation: str, service: str = "ec2", **words: Any) -> Answer:
            if operation == "create_image":
                kinds = words["TagSpecifications"]
                assert [kind["ResourceType"] for kind in kinds] == ["image", "snapshot"]
                words["TagSpecifications"] = kinds[:1]
            return super().call(operation, service, **words)

    debian = Image(base["ImageId"], "/dev/xvda", {"/dev/xvda": 8})
    words = instances.launch_words(Settings(), debian, NODE, "5eedbee1", own, image.SCRIPT)

    async def bake() -> Image:
        baking = asyncio.ensure_future(image.bake(Plain(REGION), words, image.name_of("x86_64"), own))
        built: list[instances.Instance] = []
        for pause_s in pauses(20):
            if built := await instances.of_tag(Cloud(REGION), instances.OWNER, "0123"):
                break
            await asyncio.sleep(pause_s)
        ec2.stop_instances(InstanceIds=[built[0].id])
        return await baking

    baked = asyncio.run(bake())
    found = asyncio.run(image.of_settings(Cloud(REGION), Settings(region=REGION), "x86_64"))
    assert found is not None
    assert found.id == baked.id
    (entry,) = ec2.describe_images(ImageIds=[baked.id])["Images"]
    assert {"Key": "steelyard:owner", "Value": "0123"} in entry["Tags"]


def test_the_owner_of_a_state_folder_stays_and_regions_add_up(tmp_path: Path) -> None:
    assert (known_state_id(tmp_path), regions(tmp_path)) == ("", [])
    assert len(owner := state_id(tmp_path)) == 16
    assert state_id(tmp_path) == known_state_id(tmp_path) == owner
    for region in (REGION, "us-east-1", REGION):
        keep(tmp_path / REGIONS / region, "")
    assert regions(tmp_path) == [REGION, "us-east-1"]
