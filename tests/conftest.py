"""What a test needs of the machine, told by its marks, and what it must leave as it was. A skip says why; where
STEELYARD_CI is set, a skip that nobody expected fails the whole."""

from __future__ import annotations

import gc
import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from steelyard.leases import register as lease_register
from steelyard.model.errors import SteelyardError
from steelyard.node import agent, machine_facts
from steelyard.node.folders import cache_folder
from steelyard.node.signals import ENDING
from steelyard.plan import Machine, preflight
from steelyard.site.kernel import cgroup, programs
from steelyard.site.vm.refusals import PACKAGES
from tests.again import run_again
from tests.by_file import ByFile

QUIET_WAIT_VARIABLE = "STEELYARD_QUIET_WAIT_S"
EXPECTED = ("this kernel ", "this machine has no ", "this network ", "as root ")
"""Beginnings of reasons that depend on the machine and not on its set-up."""


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A register of leases of the test's own: the real one has one place, so that all installations find it."""
    monkeypatch.setattr(lease_register, "FOLDER", tmp_path / "register")
    return tmp_path / "register"


@pytest.fixture
def no_agent(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A machine without an agent: those beside the interpreter are not looked at, but the places in this list."""
    places: list[Path] = []
    monkeypatch.setattr(agent, "candidates", lambda: tuple(places))
    return places


@pytest.fixture
def this_machine(monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    """This machine as the checks of a plan find it, the last of the list: `check` and `run` read it themselves."""
    machines: list[Machine] = []
    monkeypatch.setattr(preflight, "read_machine", lambda folder, store: machines[-1])
    return machines


@dataclass
class Rights:
    """What the kernel lets this process do, and its control groups."""

    capable: bool
    groups: cgroup.Hierarchies


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch) -> Rights:
    """A process without privileges, unless the test says otherwise: nobody can give it what root has, nor take it."""
    why = "no permission to create groups in /sys/fs/cgroup"
    given = Rights(False, cgroup.Hierarchies({}, None, frozenset(), (why,)))
    monkeypatch.setattr(machine_facts, "capable", lambda name, status=None: given.capable)
    monkeypatch.setattr(cgroup, "detect", lambda: given.groups)
    return given


@cache
def _no_agent() -> str | None:
    try:
        agent.find()
    except SteelyardError as error:
        return error.message
    return None


def _not_root() -> str | None:
    return None if os.geteuid() == 0 else "needs root"


@cache
def _no_cassandra() -> str | None:
    found = list(cache_folder().glob("cassandra-[0-9]*"))
    return None if found else "Cassandra is not in the cache: make setup"


@cache
def _no_spark() -> str | None:
    found = list(cache_folder().glob("spark-[0-9]*-hdfs-*/home"))
    return None if found else "this machine has no Spark and HDFS: steelyard setup spark-hdfs"


def _lacks(packages: str, *programs: str) -> Callable[[], str | None]:
    def check() -> str | None:
        missing = [name for name in programs if shutil.which(name) is None]
        return f"needs {', '.join(missing)}: apt-get install {packages}" if missing else None

    return check


def _no_postgresql() -> str | None:
    found = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return None if found else "needs PostgreSQL: apt-get install postgresql"


def _no_browser() -> str | None:
    return None if shutil.which("chromium") else "needs chromium: apt-get install chromium"


def _no_sshd() -> str | None:
    return None if shutil.which("/usr/sbin/sshd") else "needs sshd: apt-get install openssh-server"


def _no_docker() -> str | None:
    """Why containers cannot be tested; a daemon is started for the tests, whatever runs."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("docker", "dockerd", "debootstrap") if programs.program(name) is None]
    if missing:
        return f"needs {', '.join(missing)}: apt-get install docker.io debootstrap"
    if not cgroup.detect().bases:
        return "this machine has no control groups that a Docker daemon could use"
    return None


def _no_virtual_machine() -> str | None:
    """Why no virtual machine can be tested; without KVM it is emulated."""
    if os.geteuid() != 0:
        return "needs root"
    missing = list(dict.fromkeys(package for name, package in PACKAGES.items() if not programs.program(name)))
    if missing:
        return f"needs QEMU and what builds its image: apt-get install {' '.join(missing)}"
    if platform.machine() != "x86_64":
        return f"this machine has no processor for which images are built: {platform.machine()}"
    return None if os.path.exists("/dev/net/tun") else "this kernel has no TAP devices"


NEEDS: dict[str, Callable[[], str | None]] = {
    "agent": _no_agent,
    "root": _not_root,
    "cassandra": _no_cassandra,
    "redis": _lacks("redis-server redis-tools", "redis-server", "redis-cli"),
    "web": _lacks("apache2-bin nginx curl", "/usr/sbin/apache2", "/usr/sbin/nginx", "curl"),
    "etcd": _lacks("etcd-server curl", "etcd", "curl"),
    "postgresql": _no_postgresql,
    "spark": _no_spark,
    "httperf": _lacks("httperf", "httperf"),
    "nft": _lacks("nftables", "/usr/sbin/nft"),
    "browser": _no_browser,
    "sshd": _no_sshd,
    "docker": _no_docker,
    "vm": _no_virtual_machine,
}


def pytest_configure() -> None:
    """Studies that tests run wait for a quiet machine for a short time only. Examples have no deadline: the first that
    computes loads a library, and speed is not what tests prove. Interrupts work for tests and what they start also
    where a script runs the tests in its background; SIGTERM is one, so that what ends the tests leaves no node of
    theirs behind."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault(QUIET_WAIT_VARIABLE, "60")
    settings.register_profile("steelyard", deadline=None)
    settings.load_profile("steelyard")


FIRST = ("spark", "cassandra", "vm")
"""Marks of tests that take longest."""


def place(item: pytest.Item) -> tuple[int, bool]:
    """Tests that take longest come first, and unit tests last but those of tools, which simulate: the last file of one
    process should not keep the others waiting."""
    marks = {mark.name for mark in item.iter_markers()}
    long = next((number for number, mark in enumerate(FIRST) if mark in marks), len(FIRST))
    return long, "unit" in item.path.parts and "tools" not in item.path.parts


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what the machine cannot do, with the reason."""
    items.sort(key=place)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "quiet" in marks and "e2e" not in item.path.parts:
            raise pytest.UsageError(
                f"{item.nodeid}: tests with the mark quiet are in tests/e2e, where make test runs them"
            )
        for mark in marks & NEEDS.keys():
            if reason := NEEDS[mark]():
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Scheduler of `--dist loadfile`."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """What was collected lives until the end, so the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Try failures again, alone. In CI a skip that nobody expected is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    run_again(session, reporter)
    if not os.environ.get("STEELYARD_CI"):
        return
    reasons = [str(report.longrepr[2]) for report in reporter.stats.get("skipped", [])]
    unexpected = [reason for reason in reasons if not reason.removeprefix("Skipped: ").startswith(EXPECTED)]
    if unexpected:
        reporter.write_line(f"skipped although nobody expected it: {unexpected}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="module")
def brief_java() -> Iterator[None]:
    """Java compiles quickly instead of well: a node then costs 6 instead of 10 CPU seconds until it is ready. Not for
    tests of warm servers."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(autouse=True)
def signals_are_left_as_found() -> Iterator[None]:
    """Fails a test that leaves another handling of termination signals: later tests and their children inherit it."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    after = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert after == before, "the test left another handling of signals"
