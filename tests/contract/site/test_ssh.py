"""Site `ssh` on machines behind real sshd processes: the contract of a site, and machines that go away."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.cli.commands.doctor import doctor
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.model.errors import CommandFailed, SiteError, StudyError
from steelyard.model.finding import Finding
from steelyard.node.command import run
from steelyard.site.base import Request, Site
from steelyard.site.ssh import agent
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import machines as ssh_machines
from steelyard.testing.site import SiteContract, make_site
from tests.contract import shelf as shelves
from tests.contract.shelf import Machine, Shelf
from tests.unit.cli.screen import printed

pytestmark = [pytest.mark.root, pytest.mark.agent, pytest.mark.sshd]

REQUEST = Request("weighing", 2, 1)


def left_on(machine: Machine, lease: Lease) -> list[str]:
    """What a machine has of a lease, seen from outside."""
    places = [*machine.steelyard.glob(f"nodes/{lease.id}"), *machine.steelyard.glob("busy*")]
    return [f"{machine.name}: {place}" for place in places if place.is_dir() or lease.id in place.read_text()]


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with shelves.running(3, clock_offsets_s=(0.0, 3.0)) as running:
        yield running


@pytest.fixture(autouse=True)
def soon_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not answer for 2 s counts as gone."""
    monkeypatch.setattr(ssh_connection, "CONNECT_TIMEOUT_S", 2)
    monkeypatch.setattr(ssh_connection, "ALIVE_INTERVAL_S", 1)
    monkeypatch.setattr(ssh_connection, "ALIVE_MISSED", 2)


class TestSsh(SiteContract):
    module = "ssh"
    leases_at_once = False

    @pytest.fixture(autouse=True)
    def on_the_shelf(self, shelf: Shelf) -> None:
        type(self).settings = shelf.settings()
        type(self).shelf = shelf

    shelf: Shelf

    def remains(self, lease: Lease) -> list[str]:
        on_machines = [item for machine in self.shelf.machines for item in left_on(machine, lease)]
        sockets = [str(path) for path in ssh_connection.control_folder().glob(f"{lease.id}*")]
        return [*super().remains(lease), *on_machines, *sockets]


@pytest.fixture
def site(shelf: Shelf, tmp_path: Path) -> Site:
    return make_site("ssh", shelf.settings(), tmp_path)


def leased(site: Site, minutes: float = 30.0) -> Lease:
    return asyncio.run(site.lease(REQUEST, lease_records.utc_now() + timedelta(minutes=minutes)))


def nothing_left(shelf: Shelf, state: Path, lease: Lease | None = None) -> None:
    assert list((state / "leases").glob("*.json")) == []
    for machine in shelf.machines:
        assert list(machine.steelyard.glob("nodes/*")) == []
        assert not (machine.steelyard / "busy").exists()


def test_the_conductor_cannot_see_the_files(site: Site, shelf: Shelf) -> None:
    lease = leased(site)
    try:
        node = lease.nodes[0]
        assert node.files == "through"
        assert str(node.folder) == f"{shelves.FOLDER}/nodes/{lease.id}/n1"
        assert not node.folder.exists()
        assert Path(f"{shelf.machines[0].root}{node.folder}").is_dir()
        assert len({node.kernel for node in lease.nodes}) == 3
    finally:
        asyncio.run(site.release(lease))


def test_facts_are_the_machine_s_own(site: Site) -> None:
    lease = leased(site)
    try:
        facts = asyncio.run(site.facts(lease.nodes[1]))
        assert (facts["machine"], facts["site"]) == ("pi2", "ssh")
        assert {"cpu_model", "cores", "memory_mb", "kernel", "architecture"} <= facts.keys()
        assert facts["disk_filesystem"].startswith("tmpfs")
        assert "ulimit open_files" in facts
    finally:
        asyncio.run(site.release(lease))


def test_a_busy_machine_says_who_has_it(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    lease = leased(site)
    try:
        other = make_site("ssh", shelf.settings(), tmp_path / "other")
        with pytest.raises(SiteError, match=r"is busy: lease \w+, study weighing of \w+ on .*state folder") as refused:
            leased(other)
        assert lease.id in refused.value.message
        assert list((tmp_path / "other" / "leases").glob("*.json")) == []
    finally:
        asyncio.run(site.release(lease))
    nothing_left(shelf, tmp_path)


def test_a_lease_whose_end_has_passed_is_taken_over(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    """Its record is lost, so nobody else could ever take it back."""
    lost = leased(site, minutes=-1)
    asyncio.run(run(lost.nodes[0], ["sh", "-c", "sleep 600 > /dev/null 2>&1 &"], timeout_s=20))
    assert lease_processes.of(lost.id)
    lost.record.unlink()
    for node in lost.nodes:
        asyncio.run(ssh_machines.connection_of(node).close())
    lease = leased(site)
    assert lease_processes.of(lost.id) == set()
    assert all(left_on(machine, lost) == [] for machine in shelf.machines)
    asyncio.run(site.release(lease))
    nothing_left(shelf, tmp_path)


def test_the_agent_is_brought_once(site: Site, shelf: Shelf) -> None:
    asyncio.run(site.release(leased(site)))
    programs = {machine.name: list(machine.steelyard.glob("bin/*")) for machine in shelf.machines}
    times = [path.stat().st_mtime_ns for paths in programs.values() for path in paths]
    assert [len(paths) for paths in programs.values()] == [1, 1, 1]
    asyncio.run(site.release(leased(site)))
    assert [path.stat().st_mtime_ns for machine in shelf.machines for path in machine.steelyard.glob("bin/*")] == times


def test_an_agent_that_was_removed_is_brought_again_to_release(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    lease = leased(site)
    for machine in shelf.machines:
        for path in machine.steelyard.glob("bin/*"):
            path.unlink()
        (machine.steelyard / "nodes" / lease.id / "data").write_text("x")
    asyncio.run(site.release(lease))
    assert all(len(list(machine.steelyard.glob("bin/*"))) == 1 for machine in shelf.machines)
    nothing_left(shelf, tmp_path)


def test_an_agent_of_another_version_is_refused(
    site: Site, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only one version of an agent is built.
    monkeypatch.setattr(agent, "__version__", "9.9.9")
    with pytest.raises(SiteError, match=r"is 'steelyard-agent .*', but this is steelyard 9\.9\.9"):
        leased(site)
    nothing_left(shelf, tmp_path)


def test_without_an_agent_for_its_processor_a_machine_is_refused(
    site: Site, shelf: Shelf, tmp_path: Path, no_agent: list[Path]
) -> None:
    with pytest.raises(SiteError, match=r"agent for .* not found") as refused:
        leased(site)
    assert "make agents" in refused.value.hint
    nothing_left(shelf, tmp_path)


def test_nothing_outside_of_the_folder_is_removed(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    lease = leased(site)
    machine = shelf.machines[0]
    precious = Path(f"{machine.root}{shelves.HOME}/precious")
    precious.mkdir()
    (precious / "thesis").write_text("x")
    node = machine.steelyard / "nodes" / lease.id / "n1"
    (node / "link").symlink_to(f"{shelves.HOME}/precious")
    asyncio.run(site.release(lease))
    assert (precious / "thesis").read_text() == "x"
    nothing_left(shelf, tmp_path)


def test_ipv6(shelf: Shelf, tmp_path: Path) -> None:
    inventory = shelf.inventory(name="shelf6.toml", ipv6=True)
    site = make_site("ssh", {"inventory": str(inventory)}, tmp_path)
    lease = leased(site)
    try:
        assert [node.address for node in lease.nodes] == [machine.address6 for machine in shelf.machines]
        done = asyncio.run(run(lease.nodes[0], ["hostname"], timeout_s=20))
        assert done.exit_code == 0
    finally:
        asyncio.run(site.release(lease))
    nothing_left(shelf, tmp_path)


def test_a_machine_that_is_away_before_the_lease(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    machine = shelf.machines[1]
    shelf.stop(machine)
    try:
        with pytest.raises(ssh_connection.Unreachable, match="pi2 cannot be reached: it does not answer"):
            leased(site)
    finally:
        shelf.start(machine)
    nothing_left(shelf, tmp_path)


def test_a_machine_that_goes_away_while_it_is_lent(
    site: Site, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = shelf.machines[1]
    claim = ssh_machines._claim

    async def without_a_plug(connection, node, *more):  # type: ignore[no-untyped-def]
        if node.name == "n2":
            shelf.stop(machine)
        return await claim(connection, node, *more)

    # The machine has to go between two steps of a lease.
    monkeypatch.setattr(ssh_machines, "_claim", without_a_plug)
    with pytest.raises(SiteError, match="n2") as failed:
        leased(site)
    assert any("while taking the lease back" in note for note in failed.value.__notes__)
    shelf.start(machine)
    (left,) = asyncio.run(everything(site, tmp_path))
    asyncio.run(site.release(left))
    nothing_left(shelf, tmp_path)


async def everything(site: Site, state: Path) -> list[Lease]:
    return [record.lease(path) for path, record in lease_records.records(state, "ssh")]


@pytest.mark.parametrize("way", ["switched off", "cable pulled"])
def test_a_machine_that_goes_away_while_it_is_used(way: str, site: Site, shelf: Shelf, tmp_path: Path) -> None:
    """The others are freed at once, the record is kept, and later the rest is taken back."""
    lease = leased(site)
    machine = shelf.machines[1]
    asyncio.run(run(lease.nodes[1], ["sh", "-c", "sleep 600 > /dev/null 2>&1 &"], timeout_s=20))
    if way == "switched off":
        shelf.stop(machine)
    else:
        shelf.cut(machine)
    with pytest.raises(CommandFailed):
        asyncio.run(run(lease.nodes[1], ["true"], timeout_s=10))
    with pytest.raises(SiteError, match=rf"lease {lease.id} was not fully taken back: n2 .* cannot be reached"):
        asyncio.run(site.release(lease))
    assert lease.record.exists()
    assert left_on(shelf.machines[0], lease) == []
    if way == "switched off":
        shelf.start(machine)
    else:
        shelf.plug(machine)
        assert left_on(machine, lease)
    asyncio.run(site.release(lease))
    assert lease_processes.of(lease.id) == set()
    nothing_left(shelf, tmp_path)


def test_ssh_s_errors_carry_a_hint(shelf: Shelf, tmp_path: Path) -> None:
    machine = shelf.machines[0]
    known = shelf.folder / "known_hosts"
    config = shelf.ssh_config.read_text()
    stranger = tmp_path / "stranger"
    shelves._key(stranger)
    cases = {
        "its key is not known here": config.replace(str(known), str(tmp_path / "empty")),
        "it refuses this user": config.replace(f"{shelf.folder}/user\n", f"{stranger}\n"),
        "sshd does not answer": f"Port 23\n{config}",
        "its name does not resolve": f"Host {machine.address}\nHostName nowhere.invalid\nHost *\n{config}",
    }
    other = " ".join(stranger.with_suffix(".pub").read_text().split()[:2])
    changed = tmp_path / "changed"
    changed.write_text("".join(f"{each.address} {other}\n" for each in shelf.machines))
    cases["its key has changed"] = config.replace(str(known), str(changed))
    for meaning, text in cases.items():
        (tmp_path / "ssh_config").write_text(text)
        inventory = tmp_path / "shelf.toml"
        inventory.write_text(shelf.inventory().read_text())
        site = make_site("ssh", {"inventory": str(inventory)}, tmp_path / "state")
        with pytest.raises(ssh_connection.Unreachable, match=meaning) as refused:
            leased(site)
        assert refused.value.hint


def test_one_control_connection_for_each_machine(site: Site, shelf: Shelf) -> None:
    before = {machine.name: machine.log.count("Accepted publickey") for machine in shelf.machines}
    lease = leased(site)
    for _ in range(3):
        asyncio.run(run(lease.nodes[0], ["true"], timeout_s=20))
    asyncio.run(site.release(lease))
    after = {machine.name: machine.log.count("Accepted publickey") for machine in shelf.machines}
    assert {name: after[name] - before[name] for name in after} == {"pi1": 1, "pi2": 1, "pi3": 1}


def test_words_with_quotes_arrive_as_they_are(site: Site) -> None:
    lease = leased(site)
    try:
        words = ["a b", "it's", '"', "$HOME", "`id`", "*", "", "a\nb", "-x"]
        script = 'for word in "$@"; do printf "%s\\0" "$word"; done'
        done = asyncio.run(run(lease.nodes[0], ["sh", "-c", script, "sh", *words], timeout_s=20))
        assert done.stdout.decode().split("\0")[:-1] == words
    finally:
        asyncio.run(site.release(lease))


def test_this_process_leaves_no_interface(shelf: Shelf) -> None:
    """The shelf itself: two at once do not get in each other's way."""
    with shelves.running(1) as second:
        assert second.machines[0].address != shelf.machines[0].address
    names = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert f"x{second.third}:" not in names
    assert f"x{second.third}@" not in names


def test_doctor_walks_the_inventory_and_changes_nothing(site: Site, shelf: Shelf, tmp_path: Path) -> None:
    def trees() -> list[list[str]]:
        return [sorted(map(str, machine.steelyard.rglob("*"))) for machine in shelf.machines]

    before = trees()
    looked = printed(lambda: doctor(shelf.inventory(), as_json=True))
    findings = [Finding.model_validate(entry) for entry in json.loads(looked.out)]
    names = {
        machine: {entry.name for entry in findings if entry.machine == machine} for machine in ("pi1", "pi2", "pi3")
    }
    for machine in names.values():
        assert {"reachable", "address", "other load", "space", "memory", "java", "privileges", "clock"} <= machine
    assert all(entry.state == "good" for entry in findings if entry.name in ("reachable", "address", "clock"))
    assert all(bool(entry.hint) == (entry.state != "good") for entry in findings)
    lease = leased(site)
    try:
        busy = printed(lambda: doctor(shelf.inventory()))
        assert busy.code == 3
        assert busy.out.count("study weighing of") == 3
    finally:
        asyncio.run(site.release(lease))
    machine = shelf.machines[2]
    shelf.stop(machine)
    try:
        away = printed(lambda: doctor(shelf.inventory()))
        assert away.code == 3
        assert "pi3 cannot be reached: it does not answer" in away.out
    finally:
        shelf.start(machine)
    assert trees()[:2] == before[:2] or not before[0]


def test_doctor_says_where_an_inventory_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "shelf.toml").write_text("[[machine]]\nname = 'pi1'\nport = 'x'\n")
    with pytest.raises(StudyError, match=r"shelf\.toml:3: machine\.0\.port"):
        doctor(tmp_path / "shelf.toml")
