"""Site `ec2` on an account whose instances are machines behind real sshd processes: the contract of a site, and ends
that nobody asked for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.cli.commands.clean import clean
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.model.errors import CommandFailed, SiteError
from steelyard.node.command import run
from steelyard.site.base import Request
from steelyard.site.ec2 import Ec2Site, Settings, create, instances
from steelyard.site.ssh import connection as ssh_connection
from steelyard.testing.site import SiteContract
from tests.contract import shelf as shelves
from tests.unit.cli.screen import printed

pytest.importorskip("moto")

from tests.contract import fake_ec2
from tests.contract.fake_ec2 import AMI, REGION, FakeEc2

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]

SETTINGS = {"region": REGION, "image": AMI, "user": "root", "instance_type": "t2.medium"}
REQUEST = Request("renting", 2, 1)
LIFE_S = 30 * 60 + instances.GRACE_S
"""Time after which instances of a lease of 30 minutes end themselves."""


@pytest.fixture(scope="module")
def account() -> Iterator[FakeEc2]:
    with shelves.running(7, on=False) as shelf, fake_ec2.running(shelf) as fake:
        yield fake


@pytest.fixture(autouse=True)
def fake(account: FakeEc2, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeEc2]:
    """The account, as it was and as it must be again: empty."""
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path))
    account.hook = fake_ec2.nothing
    account.actions.clear()
    yield account
    account.forget_images()
    assert (account.alive, account.volumes) == ([], 0)


@pytest.fixture
def site(tmp_path: Path) -> Ec2Site:
    return create(Settings.model_validate(SETTINGS), tmp_path)


def leased(site: Ec2Site, minutes: float = 30.0, request: Request = REQUEST) -> Lease:
    return asyncio.run(site.lease(request, lease_records.utc_now() + timedelta(minutes=minutes)))


class TestEc2(SiteContract):
    module = "ec2"
    settings: ClassVar = SETTINGS
    same_addresses = False
    kill_moments = (0.3, 0.6, 0.9)

    def remains(self, lease: Lease) -> list[str]:
        sockets = [str(path) for path in ssh_connection.control_folder().glob(f"{lease.id}*")]
        folder = lease.record.parent.parent / "nodes" / lease.id
        return [*super().remains(lease), *sockets, *([str(folder)] if folder.exists() else [])]


def test_facts_say_which_instance_it_is(site: Ec2Site, fake: FakeEc2) -> None:
    lease = leased(site)
    try:
        facts = asyncio.run(site.facts(lease.nodes[0]))
        assert facts["ec2_instance"] in fake.alive
        assert (facts["ec2_instance_type"], facts["ec2_image"], facts["ec2_zone"]) == ("t2.medium", AMI, f"{REGION}a")
        assert facts["ec2_credit"] in ("standard", "unlimited")
        assert {"cpu_model", "cores", "kernel"} <= facts.keys()
    finally:
        asyncio.run(site.release(lease))


def victim(state: Path) -> subprocess.Popen[str]:
    """A conductor that takes a lease and waits."""
    asked = json.dumps(["ec2", SETTINGS, 2, 1])
    argv = [sys.executable, "-m", "steelyard.testing.site", str(state), asked]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("image", "action", "time_of", "moment"), [
    (AMI, "DescribeInstanceTypes", 1, "before"),
    (AMI, "RunInstances", 1, "before"),
    (AMI, "RunInstances", 2, "after"),  # launched, and the answer never arrived
    (AMI, "DescribeInstances", 1, "after"),  # they boot
    (AMI, "CreateTags", 1, "after"),  # being handed on
    (AMI, "RunInstances", 3, "after"),  # a further one
    (AMI, "TerminateInstances", 1, "before"),
    (AMI, "TerminateInstances", 1, "after"),
    ("baked", "RunInstances", 1, "after"),
    ("baked", "CreateImage", 1, "after"),
])  # fmt: skip
def test_of_a_conductor_that_is_killed_nothing_runs_when_its_lease_is_over(
    fake: FakeEc2, tmp_path: Path, image: str, action: str, time_of: int, moment: str
) -> None:
    """Instances end without `clean`, which finds what is left then: a builder that has stopped, and records."""
    seen: list[str] = []
    argv = [sys.executable, "-m", "tests.contract.site.renter", str(tmp_path), json.dumps(SETTINGS | {"image": image})]
    with subprocess.Popen(argv) as child:

        def hook(called: str, when: str) -> None:
            if (called, when) == (action, moment):
                seen.append(called)
                if len(seen) == time_of:
                    os.kill(child.pid, signal.SIGKILL)

        fake.hook = hook
        assert child.wait(60) == -signal.SIGKILL
    fake.hook = fake_ec2.nothing
    time.sleep(0.5)  # calls of its other threads that were on their way
    fake.let_pass(LIFE_S)
    ended(fake, 0)
    assert printed(lambda: clean(["ec2"])).code == 0
    assert lease_records.records(tmp_path) == []


def ended(fake: FakeEc2, alive: int) -> None:
    """Wait until no more than so many instances are alive, and no process of those that are not."""
    deadline = time.monotonic() + 20
    while len(fake.alive) > alive or (alive == 0 and fake.processes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_image_that_was_baked_is_used(fake: FakeEc2, tmp_path: Path) -> None:
    ours = create(Settings.model_validate(SETTINGS | {"image": "baked"}), tmp_path)
    for _ in range(2):
        asyncio.run(ours.release(leased(ours, request=Request("renting", 1, 0))))
    assert fake.actions.count("CreateImage") == 1


def test_an_instance_that_reboots_ends_when_its_lease_does(site: Ec2Site, fake: FakeEc2) -> None:
    lease = leased(site, request=Request("renting", 1, 0))
    (instance,) = fake.alive
    fake.reboot(instance)
    time.sleep(1)
    assert fake.alive == [instance]
    fake.let_pass(LIFE_S)
    ended(fake, 0)
    asyncio.run(site.release(lease))


def test_a_lease_whose_record_is_lost_is_found_by_its_tags(fake: FakeEc2, tmp_path: Path) -> None:
    with victim(tmp_path) as child:
        assert child.stdout is not None
        identity = [child.stdout.readline().split() for _ in range(2)][1][1]
        child.kill()
    lease_records.record_path(tmp_path, identity).unlink()
    assert len(fake.alive) == 3
    cleaned = printed(lambda: clean(["ec2"]))
    assert (cleaned.code, f"removed lease {identity} of site ec2" in cleaned.err) == (0, True)
    assert "nothing is left over" in printed(lambda: clean(["ec2"])).err


def test_an_instance_ends_itself_unless_its_lease_is_handed_on(site: Ec2Site, fake: FakeEc2) -> None:
    """Two leases without a conductor, of which one was handed on."""
    request = Request("renting", 1, 1)
    alone, later = leased(site, request=request), leased(site, request=request)
    renewed = asyncio.run(site.recycle(later, request, lease_records.utc_now() + timedelta(minutes=60)))
    assert renewed is not None
    fake.let_pass(LIFE_S)
    ended(fake, 2)
    time.sleep(1)
    done = asyncio.run(run(renewed.nodes[0], ["true"], timeout_s=10))
    assert (done.exit_code, len(fake.alive)) == (0, 2)
    for lease in (alone, renewed):
        asyncio.run(site.release(lease))


def test_an_instance_that_is_ended_by_another_voids_what_it_was_for(site: Ec2Site, fake: FakeEc2) -> None:
    lease = leased(site)
    try:
        assert site.link_failure(lease) is None
        instance = asyncio.run(site.facts(lease.nodes[1]))["ec2_instance"]
        fake.end(instance)
        assert f"instance {instance} of n2 is terminated" in str(site.link_failure(lease))
        with pytest.raises(CommandFailed):
            asyncio.run(run(lease.nodes[1], ["true"], timeout_s=5))
        assert asyncio.run(site.recycle(lease, REQUEST, lease.until)) is None
    finally:
        asyncio.run(site.release(lease))


def test_calls_that_are_throttled_are_repeated(site: Ec2Site, fake: FakeEc2) -> None:
    fake.throttled = 2
    lease = leased(site, request=Request("renting", 1, 0))
    asyncio.run(site.release(lease))
    assert fake.throttled == 0


def test_a_call_that_is_repeated_launches_nothing_twice(site: Ec2Site, fake: FakeEc2) -> None:
    """Its answer was lost on the way: botocore asks again, with the same token."""
    lost: list[str] = []

    def lose(action: str, moment: str) -> None:
        if (action, moment) == ("RunInstances", "after") and not lost:
            lost.append(action)
            raise ConnectionResetError

    fake.hook = lose
    lease = leased(site)
    assert len(fake.alive) == 3
    assert fake.actions.count("RunInstances") >= 4
    asyncio.run(site.release(lease))


def test_a_machine_that_nobody_gets_into_is_given_back(site: Ec2Site, fake: FakeEc2, tmp_path: Path) -> None:
    """A user that the AMI does not have."""
    wrong = create(Settings.model_validate(SETTINGS | {"user": "nobody"}), tmp_path)

    async def soon() -> None:
        async with asyncio.timeout(3):
            await wrong.lease(Request("renting", 1, 0), lease_records.utc_now() + timedelta(minutes=5))

    with pytest.raises((SiteError, TimeoutError)):
        asyncio.run(soon())
    assert fake.alive == []
    assert lease_records.records(tmp_path) == []
