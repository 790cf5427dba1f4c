"""`steelyard clean` and `steelyard doctor` on what really is on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from steelyard.cli.commands.clean import clean
from steelyard.cli.commands.doctor import doctor
from steelyard.lab.leftovers import reclaim
from steelyard.leases import processes as lease_processes
from steelyard.leases import records as lease_records
from steelyard.leases import register as lease_register
from steelyard.leases.lease import Lease
from steelyard.model.errors import SiteError
from steelyard.site import fake
from steelyard.site.base import Request
from tests.unit.cli.screen import printed

NO_RECORD = "it has no record of a lease whose owner is gone, at any site"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path))
    return tmp_path


@pytest.fixture
def killed(state: Path) -> str:
    """The lease of a conductor that was killed with a process on its node."""
    return killed_at(state, "fake")


def killed_at(state: Path, site: str) -> str:
    argv = [sys.executable, "-m", "steelyard.testing.site", str(state), json.dumps([site, {}, 1, 0])]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline().split() for _ in range(3)]
        os.kill(child.pid, signal.SIGKILL)
    return lines[1][1]


ELSEWHERE = "lease "
"""Begins lines on other state folders: those of other tests."""


def cleaned(*, dry_run: bool = False) -> tuple[int, str]:
    found = printed(lambda: clean(["fake"], dry_run=dry_run), 400)
    lines = (found.out + found.err).splitlines(keepends=True)
    return found.code, "".join(line for line in lines if not line.startswith(ELSEWHERE))


def nothing(state: Path) -> str:
    return f"nothing is left over in {state}: {NO_RECORD}, and site fake found nothing else\n"


def site_of(state: Path, fail: str = "") -> fake.FakeSite:
    return fake.create(fake.Settings.model_validate({"fail": fail}), state)


def expired(fail: str = "") -> Lease:
    site = site_of(Path(os.environ["STEELYARD_STATE"]), fail)
    return asyncio.run(site.lease(Request("long study", 1), lease_records.utc_now() - timedelta(minutes=1)))


def test_clean_where_nothing_is_left(state: Path) -> None:
    assert cleaned() == (0, nothing(state))


def test_clean_shows_then_removes(killed: str, state: Path) -> None:
    for _ in range(2):
        code, text = cleaned(dry_run=True)
        assert code == 0
        assert text.startswith(
            f"left over: lease {killed} of site fake (study victim, 1 database node, 2 processes): its owner"
        )
    code, text = cleaned()
    assert (code, text.split(" of ")[0]) == (0, f"removed lease {killed}")
    assert lease_processes.of(killed) == set()
    assert list((state / "nodes").iterdir()) == []
    assert cleaned() == (0, nothing(state))


def test_a_process_of_another_state_folder_is_named_and_left_alone(state: Path, tmp_path: Path) -> None:
    """Its record is gone, too: that installation may know why."""
    marks = lease_records.environment(state / "other", "5eedbee1")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **marks}) as process:
        try:
            found = printed(lambda: clean(["fake"]), 400)
            assert f"lease 5eedbee1 is left over in {state / 'other'}: STEELYARD_STATE=" in "".join(
                found.err.split("\n")
            )
            assert process.poll() is None
        finally:
            process.kill()


def test_a_process_without_its_record_is_named_with_its_command(state: Path) -> None:
    marks = lease_records.environment(state, "5eedbee2")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **marks}) as process:
        code, text = cleaned()
        path = lease_records.record_path(state, "5eedbee2")
        assert process.wait(5) == -signal.SIGKILL
    assert code == 0
    assert f"no record says whose it is: {path} does not exist; process {process.pid} (sleep 60)" in text


def test_a_site_that_needs_settings_is_cleaned_by_its_records(state: Path) -> None:
    """The records hold them; without a record there is nothing that could be found, and it says so."""
    found = printed(lambda: clean(["ssh"], dry_run=True), 400)
    text = f"nothing is left over in {state}: {NO_RECORD}; of site ssh only records were read, since it needs settings"
    assert (found.code, text in found.err) == (0, True)


def test_a_lease_of_another_site_without_its_record_is_left_to_that_site(
    state: Path, tmp_path: Path, register: Path
) -> None:
    """Site local would take back nothing of it, and forget it. Not asked here: with a register of the test's own it
    would take the namespaces of everybody else's leases for nobody's."""
    lease_register.enter("5eedbee3", lease_records.record_path(state, "5eedbee3"), "docker", lease_records.owner())
    lease_register.enter(
        "5eedbee4", lease_records.record_path(state / "other", "5eedbee4"), "docker", lease_records.owner()
    )
    found = printed(lambda: clean(["fake"]), 400)
    assert (
        f"lease 5eedbee4 is left over in {state / 'other'}: STEELYARD_STATE={state / 'other'} steelyard clean docker"
        in (found.err)
    )
    assert lease_register.lost(state, "docker") == {"5eedbee3": lease_records.record_path(state, "5eedbee3")}
    assert lease_register.lost(state, "local") == {}


def test_clean_as_data(killed: str, state: Path) -> None:
    data = json.loads(printed(lambda: clean(["fake"], as_json=True)).out)
    assert [(lease["lease"], lease["outcome"], lease["processes"]) for lease in data["leases"]] == [
        (killed, "removed", 2)
    ]


SITE_FILE = '''"""A site of one's own: that of the tests under another name."""
from pathlib import Path
from steelyard.site.fake import FakeSite, Settings

class Boards(FakeSite):
    name = "boards"

def create(settings: Settings, state_folder: Path) -> Boards:
    return Boards(settings, state_folder)
'''


def test_a_site_that_is_a_file_is_cleaned_by_its_path(state: Path, tmp_path: Path) -> None:
    """Its record names the site, and only the path says where it is."""
    file = tmp_path / "boards.py"
    file.write_text(SITE_FILE, encoding="utf-8")
    lease = killed_at(state, str(file))
    unknown = printed(lambda: clean(["fake"]))
    assert unknown.code == 3
    assert f"could not remove lease {lease} of site boards" in unknown.err
    assert "steelyard clean ./FILE.py" in unknown.err
    assert lease_processes.of(lease)
    looked = printed(lambda: clean([str(file)], dry_run=True))
    assert (looked.code, looked.err.partition(" (")[0]) == (0, f"left over: lease {lease} of site boards")
    removed = printed(lambda: clean([str(file)]))
    assert (removed.code, removed.err.partition(" (")[0]) == (0, f"removed lease {lease} of site boards")
    assert lease_processes.of(lease) == set()
    assert list((state / "nodes").iterdir()) == []
    assert lease_records.records(state) == []


def test_clean_never_touches_a_lease_whose_owner_lives(state: Path) -> None:
    lease = expired()
    code, text = cleaned()
    assert code == 0
    assert text.startswith(
        f"kept lease {lease.id} of site fake (study long study, 1 database node and 1 load node, 0 processes)"
    )
    assert "its owner lives" in text
    assert lease.record.exists()


def test_clean_says_what_it_could_not_remove(killed: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stuck(site: fake.FakeSite, lease: Lease) -> None:
        raise SiteError("the disk is gone")

    with monkeypatch.context() as patched:
        # `clean` finds its sites by name: this one is found broken.
        patched.setattr(fake.FakeSite, "release", stuck)
        code, text = cleaned()
        assert code == 3
        assert text.startswith(f"could not remove lease {killed}")
        assert "the disk is gone" in text
        with pytest.raises(SiteError, match="the disk is gone"):
            asyncio.run(reclaim([site_of(state)], print))
    assert cleaned()[0] == 0


def test_reclaim_is_silent_when_there_is_nothing(state: Path) -> None:
    expired()
    lines: list[str] = []
    asyncio.run(reclaim([site_of(state)], lines.append))
    assert lines == []


def test_doctor_gives_every_fault_its_hint(state: Path, no_agent: list[Path]) -> None:
    found = printed(lambda: doctor(as_json=True))
    assert found.code == 3
    findings = {finding["name"]: finding for finding in json.loads(found.out)}
    assert {"processor", "memory", "clock", "privileges", "cgroups", "site local", "leftovers"} <= findings.keys()
    assert findings["agent"]["state"] == "bad"
    assert all(finding["hint"] for finding in findings.values() if finding["state"] != "good")
    assert all(not finding["hint"] for finding in findings.values() if finding["state"] == "good")


def test_doctor_prints_a_line_each(state: Path) -> None:
    found = printed(doctor)
    assert any(line[2:].startswith("clock ") for line in found.out.splitlines())
