"""Site `docker` where it needs no Docker: settings, words for its client, refusals, the recipe of its image."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.leases import records as lease_records
from steelyard.model.errors import CommandFailed, LastingSiteError
from steelyard.model.node_limits import NodeLimits
from steelyard.node.base import Node
from steelyard.node.processor import RunningProgram
from steelyard.site import docker, local
from steelyard.site.base import Refusal, Request, helpers_time_s
from steelyard.site.docker import containers, image
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.docker import facts as docker_facts
from steelyard.site.docker.daemon import Daemon
from steelyard.site.kernel import cgroup, debian, mountinfo
from steelyard.site.kernel import programs as kernel_programs
from tests.conftest import Rights

CGROUPS_1 = """\
12:memory:/docker/abc
5:cpuacct:/docker/abc
4:cpu:/docker/abc
3:cpuset:/docker/abc
0::/docker/abc
"""
MOUNTS_1 = tuple(
    cgroup.Mount(Path("/sys/fs/cgroup", name), 1, frozenset({name})) for name in ("cpu", "cpuacct", "memory")
)
UNIFIED = cgroup.Mount(Path("/sys/fs/cgroup"), 2, frozenset())


@pytest.mark.parametrize(
    "wrong",
    [
        {"network": "none"},
        {"storage": "tmpfs"},
        {"cpu_limit": "shares"},
        {"daemon": "other"},
        {"program": "lxc"},
        {"mounts": ["builds/main"]},
        {"subnet": "10"},
        {"subnet": "10.256"},
        {"subnet": "127.1"},
        {"subnet": "10.0"},
        {"cpus": 1},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        docker.Settings.model_validate(wrong)


def test_shares_the_network_only_where_it_is_the_machine_s(tmp_path: Path) -> None:
    by_network = {name: docker.create(docker.Settings(network=name), tmp_path).shares for name in ("host", "bridge")}
    assert by_network["host"] - by_network["bridge"] == {"network"}
    assert list(tmp_path.iterdir()) == []


def test_a_container_carries_the_lease_s_mark_and_its_limits(tmp_path: Path) -> None:
    node = Node(
        "n1", "database", "127.114.0.1", (), tmp_path, environment=lease_records.environment(tmp_path, "0123abcd")
    )
    limits = containers.Limits(cpus=0.5, memory_mb=300)
    words = containers.create_words(
        node, "0123abcd", "debian:12", ["type=bind,source=/a,target=/a"], limits, ["--network", "host"]
    )
    pairs = set(pairwise(words))
    assert words[:2] == ["run", "--detach"]
    assert words[-4:] == ["--entrypoint", "sleep", "debian:12", "infinity"]
    assert {
        ("--name", "sy-0123abcd-n1"),
        ("--label", "STEELYARD_LEASE=0123abcd"),
        ("--env", "STEELYARD_LEASE=0123abcd"),
        ("--label", f"STEELYARD_LEASE_RECORD={lease_records.record_path(tmp_path, '0123abcd')}"),
        ("--cpus", "0.5"),
        ("--memory", "300m"),
        ("--memory-swap", "300m"),
        ("--mount", "type=bind,source=/a,target=/a"),
    } <= pairs
    assert {("--cap-drop", "ALL"), ("--security-opt", "no-new-privileges")} <= pairs
    assert not {"--privileged", "--cap-add"} & set(words)
    assert len(containers.bridge_name("0123abcd")) <= 15


def test_no_limit_is_no_option() -> None:
    assert containers.limit_words(containers.Limits()) == []
    assert containers.limit_words(containers.Limits(cores="0,1")) == ["--cpuset-cpus", "0,1"]


def test_nodes_take_whole_cores_in_turn() -> None:
    assert [containers.cores_of(index, 2, 4) for index in range(3)] == ["0,1", "2,3", "0,1"]
    assert [containers.cores_of(index, 2, 3) for index in range(3)] == ["0,1", "0,2", "1,2"]
    assert containers.cores_of(5, 4, 4) == "0,1,2,3"


def test_mounts_are_quoted_and_hold_nothing_that_is_mounted_below(tmp_path: Path) -> None:
    odd = tmp_path / "a, b"
    odd.mkdir()
    plain = f"type=bind,source={tmp_path},target={tmp_path}"
    assert containers.mount(tmp_path) == f"{plain},readonly,bind-nonrecursive"
    assert containers.mount(tmp_path, writable=True) == plain
    assert containers.mount(odd, writable=True) == f'type=bind,"source={odd}","target={odd}"'


def test_control_groups_of_both_versions() -> None:
    first = [str(folder) for folder in containers.folders_of(CGROUPS_1, (*MOUNTS_1, UNIFIED))]
    assert sorted(first) == [f"/sys/fs/cgroup/{name}/docker/abc" for name in ("cpu", "cpuacct", "memory")]
    scope = "0::/system.slice/docker-abc.scope\n"
    second = containers.folders_of(scope, (UNIFIED,))
    assert second == (Path("/sys/fs/cgroup/system.slice/docker-abc.scope"),)
    assert containers.folders_of("", MOUNTS_1) == ()


def test_what_a_daemon_of_our_own_leaves_mounted_is_found_deepest_first() -> None:
    line = "{} 1 0:5 {} {} rw - overlay overlay rw"
    data = "/cache/docker/data"
    places = [f"{data}/a/merged", "/cache", "/run/d/exec/netns/x", f"{data}/a/merged/dev"]
    lines = [line.format(number, "/", place) for number, place in enumerate(places)]

    def found(text: str) -> list[str]:
        return [str(place) for place in mountinfo.below(mountinfo.parse(text), Path("/run/d"), Path(data))]

    deepest_first = [places[3], places[2], places[0]]
    assert found("\n".join(lines)) == deepest_first
    assert found("\n".join([line.format(9, data, data), *lines])) == [*deepest_first, data]
    disk = line.format(9, "/", data)
    assert found("\n".join([disk, *lines])) == deepest_first, "a disk of the user's stays"


def test_a_daemon_of_our_own_makes_no_filters_and_no_bridge(tmp_path: Path) -> None:
    argv = docker_daemon.Own(tmp_path / "run", tmp_path / "data").argv("/usr/sbin/dockerd")
    assert {"--iptables=false", "--ip-masq=false", "--ip-forward=false"} <= set(argv)
    pairs = dict(pairwise(argv))
    assert (pairs["--bridge"], pairs["--data-root"]) == ("none", str(tmp_path / "data"))
    assert pairs["--host"] == f"unix://{tmp_path}/run/docker.sock"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes programs of a shell: there are no others, but those of the shell itself."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    # Root's own folders are searched whatever PATH says, and this machine may have a Docker there.
    monkeypatch.setattr(kernel_programs, "search_path", lambda: str(folder))

    def write(name: str, script: str = "exit 0") -> Path:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return folder / name

    return write


def test_a_daemon_that_is_still_being_loaded_is_waited_for(programs: Callable[..., Path], tmp_path: Path) -> None:
    """On a slow disk a process has no environment for a while, so it cannot be found by its mark."""
    own = docker_daemon.Own(tmp_path / "run", tmp_path / "data")
    programs("dockerd", f"echo $$ > {tmp_path}/pid; exec env -i sleep 60")
    asked = f"echo x >> {tmp_path}/asked; [ $(wc -l < {tmp_path}/asked) -gt 2 ]"
    client = programs("docker", f"{asked} || {{ echo no socket yet >&2; exit 1; }}")
    daemon = asyncio.run(docker_daemon.ensure(own, str(client)))
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert daemon.own
    assert (tmp_path / "asked").read_text() == "x\nx\nx\n", "asked until it answered"


def test_helpers_are_counted_by_name() -> None:
    programs = {
        (1, 1): RunningProgram("dockerd", 2.0),
        (2, 1): RunningProgram("containerd-shim", 0.25),
        (3, 1): RunningProgram("containerd-shim", 0.5),
        (4, 1): RunningProgram("java", 100.0),
    }
    assert docker_daemon.time_s(programs) == {"dockerd": 2.0, "containerd-shim": 0.75}


def test_facts_are_what_docker_says() -> None:
    described = {
        "Image": "sha256:1",
        "Config": {"Image": "cassandra:5"},
        "HostConfig": {"NetworkMode": "host", "Runtime": "runc", "CpusetCpus": "0,1"},
        "Mounts": [{"Destination": "/n1", "Type": "bind"}],
    }
    info = {"ServerVersion": "20.10", "Driver": "overlay2", "SecurityOptions": ["name=seccomp,profile=default"]}
    facts = docker_facts.container_facts(described, info, {"Size": 7})
    assert facts["container_engine"] == "Docker 20.10"
    assert facts["container_security"] == "name=seccomp,profile=default"
    assert facts["container_image_bytes"] == "7"
    assert "container_cgroup_driver" not in facts
    assert all(docker_facts.container_facts({}, {}, {}).values())


THREE = Request("s", 3)
ABSENT = "Cannot connect to the Docker daemon"
RECIPE = debian.Recipe("bookworm", "http://one.example/debian", ("jre",), "x86_64")
CLIENT = """\
case "$*" in
"context inspect"*) echo unix:///d.sock ;;
*" version "*) cat {folder}/problem >&2; [ ! -s {folder}/problem ] ;;
*" image inspect "*) for name; do :; done; grep -qx "$name" {folder}/images ;;
esac"""


@dataclass
class Found:
    """A machine with a Docker that runs; tests change what it has."""

    folder: Path
    write: Callable[..., Path]
    rights: Rights
    uid: int = 0

    def says(self, problem: str) -> None:
        """Why its daemon does not answer; nothing if it does."""
        (self.folder / "problem").write_text(problem)

    def lacks(self, *names: str) -> None:
        """Remove programs."""
        for name in names:
            (self.folder / "bin" / name).unlink()

    @property
    def archive(self) -> Path:
        """The build of Steelyard's own image."""
        return image.archive(self.folder / "cache", RECIPE)


@pytest.fixture
def found(
    programs: Callable[..., Path], rights: Rights, register: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Found:
    """It needs no Docker, no root and no Debian."""
    machine = Found(tmp_path, programs, rights)
    rights.capable, rights.groups = True, cgroup.Hierarchies({"cpu": tmp_path}, None, frozenset(), ())
    # This machine may be no Debian, and its user root or not.
    monkeypatch.setattr(image, "recipe", lambda: RECIPE)
    monkeypatch.setattr(os, "geteuid", lambda: machine.uid)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    for name in ("dockerd", "ip"):
        programs(name)
    programs("docker", CLIENT.format(folder=tmp_path))
    (tmp_path / "images").write_text("debian:12\n")
    machine.says("")
    machine.archive.parent.mkdir(parents=True)
    machine.archive.touch()
    return machine


def refusal(tmp_path: Path, request: Request = THREE, memory_mb: int | None = None, **settings: Any) -> str:
    return docker.create(docker.Settings(**settings), tmp_path).refuse(request, memory_mb) or ""


@pytest.mark.agent
def test_refusals_give_a_reason_and_a_hint(found: Found, tmp_path: Path) -> None:
    assert refusal(tmp_path) == ""
    assert "251 nodes" in refusal(tmp_path, Request("s", 251))
    found.archive.unlink()
    assert "no image: building an image needs the program debootstrap" in refusal(tmp_path)
    assert refusal(tmp_path, image="debian:12") == ""
    found.archive.touch()
    found.says(ABSENT)
    assert "Cannot connect" in refusal(tmp_path, daemon="running")
    found.lacks("dockerd", "ip")
    assert "program dockerd not found (Debian: apt-get install docker.io" in refusal(tmp_path)
    found.uid = 1000
    assert "starting one needs root" in refusal(tmp_path)
    found.says("permission denied while trying to connect")
    assert "add this user to the group docker" in refusal(tmp_path)
    found.lacks("docker")
    assert "program docker not found (Debian" in refusal(tmp_path)


@pytest.mark.agent
def test_limits_that_cannot_be_enforced_are_refused(found: Found, tmp_path: Path) -> None:
    half = Request("s", 1, limits=NodeLimits(cpus=0.5))
    assert refusal(tmp_path, half) == ""
    bound = Request("s", 1, limits=NodeLimits(cpus=1, cpu_limit="cpuset"))
    assert 'for containers, site.cpu_limit = "cpuset" sets' in refusal(tmp_path, bound)
    assert "not a whole number of cores" in refusal(tmp_path, half, cpu_limit="cpuset")
    assert "cores" in refusal(tmp_path, Request("s", 1, limits=NodeLimits(cpus=10_000)))
    assert "less than 0.01 cannot be enforced" in refusal(tmp_path, Request("s", 1, limits=NodeLimits(cpus=0.005)))
    small = Request("s", 1, limits=NodeLimits(memory_mb=100))
    assert refusal(tmp_path, small, 300) == "a node needs 300 MB, but memory_mb = 100 is its limit"
    assert "MB are available" in refusal(tmp_path, Request("s", 200), 10_000_000)
    found.uid, found.rights.capable = 1000, False
    assert "needs root, who owns the layers" in refusal(tmp_path, storage="overlay")
    assert "more than one load node" in refusal(tmp_path, Request("s", 1, 2), network="bridge")


UNREACHABLE = 'Error: Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host'
DENIED = "Error response from daemon: pull access denied for cassandr, repository does not exist"


@pytest.mark.parametrize(
    ("answer", "code", "words", "hinted"),
    [
        (UNREACHABLE, 1, "its registry could not be reached: `docker pull cassandra:5` failed: Error", "network"),
        (DENIED, 1, "its registry has no public image of that name: `docker pull", "check its name"),
        ("no space left on device", 1, "it could not be pulled: `docker pull cassandra:5` failed: no space", ""),
        ("", None, "`docker pull cassandra:5` did not end within 1200 s", "network"),
    ],
)
def test_an_image_that_cannot_be_had_is_told_from_a_registry_that_cannot_be_reached(
    answer: str, code: int | None, words: str, hinted: str
) -> None:
    error = CommandFailed("", ("docker", "pull"), code, answer)
    here = ["debian:12", "<none>:<none>", f"{image.REPOSITORY}:1"]
    message, hint = image.not_pulled("cassandra:5", error, here, own=False)
    assert message.startswith(f"the image cassandra:5 is not here, and {words}")
    assert hinted in hint
    assert "`docker load` it here" in hint
    assert 'site.image = ""' in hint
    assert hint.endswith("name an image that is present (debian:12)")
    assert "in a Docker that runs here" in image.not_pulled("cassandra:5", error, [], own=True)[1]


def test_an_image_that_could_not_be_pulled_is_not_asked_for_again(
    programs: Callable[..., Path], tmp_path: Path
) -> None:
    failing = f"""*" pull "*) echo '{UNREACHABLE}' >&2; exit 1 ;;"""
    client = programs("docker", f"""echo "$*" >> {tmp_path}/asked\ncase "$*" in\n{failing}\nesac""")
    daemon = Daemon(str(client), "unix:///d.sock")
    with pytest.raises(LastingSiteError, match=r"could not be reached"):
        asyncio.run(image.ensure(daemon, "0123abcd", "cassandra:5", Path("/nowhere"), lambda text: None))
    assert (tmp_path / "asked").read_text().count(" pull ") == 1


@pytest.mark.agent
def test_what_a_site_refuses_lasts(found: Found, tmp_path: Path) -> None:
    site = docker.create(docker.Settings(), tmp_path)
    with pytest.raises(LastingSiteError, match="251 nodes of one role"):
        asyncio.run(site.lease(Request("s", 251), lease_records.utc_now()))


def test_cores_without_a_number_of_them_are_refused(found: Found, tmp_path: Path) -> None:
    assert "has no effect without node.cpus" in refusal(tmp_path, cpu_limit="cpuset")
    assert refusal(tmp_path, cpu_limit="quota") == ""


def test_cores_that_this_machine_cannot_give_are_refused(found: Found, tmp_path: Path) -> None:
    found.rights.groups = cgroup.Hierarchies({}, None, frozenset(), ())
    one_core = Request("s", 1, limits=NodeLimits(cpus=1, cpus_from="start"))
    assert "no controller cpuset" in refusal(tmp_path, one_core, cpu_limit="cpuset")


def notes(tmp_path: Path, **settings: Any) -> list[str]:
    return list(docker.create(docker.Settings(**settings), tmp_path).notes(THREE))


def test_what_run_starts_or_pulls_first_is_a_note(found: Found, tmp_path: Path) -> None:
    assert notes(tmp_path, image="debian:12") == []
    (pulls,) = notes(tmp_path, image="cassandra:5")
    assert pulls.startswith("the image cassandra:5 is not on the Docker that runs here: `run` pulls it")
    found.says(ABSENT)
    starts, shows = notes(tmp_path, image="cassandra:5")
    assert starts.startswith("no Docker runs here: `run` starts its own Docker daemon, as root, and ends it with")
    assert "whether that daemon has the image cassandra:5 is known once it runs" in shows
    assert notes(tmp_path, image="cassandra:5", daemon="running") == [], "refused instead"
    mark = {docker_daemon.MARKER: str(docker_daemon.ours().folder)}
    dockerd = found.write("dockerd", "read line")
    with subprocess.Popen([dockerd], env={**os.environ, **mark}, stdin=subprocess.PIPE):
        assert notes(tmp_path, image="debian:12") == []


def test_an_own_image_that_is_not_built_is_a_note(found: Found, tmp_path: Path) -> None:
    found.archive.unlink()
    found.write("debootstrap")
    (built,) = notes(tmp_path)
    assert built.startswith("Steelyard's own image is not built yet: `run` builds it, a minute or two")
    found.archive.touch()
    assert notes(tmp_path) == []


def test_a_daemon_elsewhere_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    looked = docker_daemon.running("docker")
    assert looked.daemon is None
    assert looked.problem.startswith("DOCKER_HOST = 'tcp://10.0.0.1:2375': a Docker reached over a network")
    assert looked.hint.startswith("unset DOCKER_HOST, or name a socket of this machine: unix:///")
    monkeypatch.setenv("DOCKER_HOST", "ssh://me:secret@pi")
    assert "'ssh://pi'" in docker_daemon.running("docker").problem
    for malformed in ("nonsense", "unix://run/docker.sock"):
        monkeypatch.setenv("DOCKER_HOST", malformed)
        assert f"DOCKER_HOST = {malformed!r}: not the address of a socket" in docker_daemon.running("docker").problem
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert docker_daemon.running("docker").problem.startswith("DOCKER_HOST = 'unix:///nowhere.sock': ")


@pytest.mark.parametrize(("named", "hint"), [("", "docker context use default"), ("far", "unset DOCKER_CONTEXT")])
def test_a_context_elsewhere_is_left_by_what_chose_it(
    named: str, hint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho ssh://pi\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONTEXT", named)
    looked = docker_daemon.running("docker")
    assert looked.problem.startswith("ssh://pi (docker context): ")
    assert looked.hint == hint


@pytest.mark.agent
def test_docker_host_is_said_to_be_used_or_not(found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///d.sock")
    assert notes(tmp_path, image="debian:12") == [
        "the containers are made by the Docker that DOCKER_HOST names, unix:///d.sock"
    ]
    passed_over, *_ = notes(tmp_path, image="debian:12", daemon="own")
    assert passed_over == "DOCKER_HOST = 'unix:///d.sock' is ignored because of site.daemon = \"own\""
    monkeypatch.setenv("DOCKER_HOST", "tcp://a:1")
    ignored, starts, *_ = notes(tmp_path, image="debian:12")
    why = "DOCKER_HOST = 'tcp://a:1': a Docker reached over a network may be on another machine"
    hint = docker_daemon.HOST_HINT
    assert ignored == f"{why}; the containers are made by a Docker daemon of Steelyard's own instead ({hint})"
    assert "`run` starts its own Docker daemon" in starts
    refused = refusal(tmp_path, image="debian:12", daemon="running")
    assert f"{why}; {hint}, or site.daemon" in refused


@pytest.mark.agent
def test_refusals_name_the_key_at_fault(found: Found, tmp_path: Path) -> None:
    def key(request: Request = THREE, memory_mb: int | None = None, **settings: Any) -> str:
        refused = docker.create(docker.Settings(**settings), tmp_path).refuse(request, memory_mb)
        assert isinstance(refused, Refusal)
        return refused.key

    assert key(Request("s", 1, limits=NodeLimits(memory_mb=100)), 300) == "node.memory_mb"
    assert key(cpu_limit="cpuset") == "site.cpu_limit"
    assert key(Request("s", 1, limits=NodeLimits(cpus=10_000))) == "node.cpus"
    found.says(ABSENT)
    assert key(daemon="running") == "site.daemon"
    found.lacks("docker")
    assert key() == "site.program"


def test_the_time_of_daemons_is_told_from_that_of_everything_else() -> None:
    census = {
        (1, 1): RunningProgram("dockerd", 3.0),
        (2, 2): RunningProgram("containerd", 2.0),
        (3, 3): RunningProgram("java", 100.0),
    }
    site = docker.create(docker.Settings(), Path("/no/state"))
    assert helpers_time_s([site], census) == 5.0
    assert helpers_time_s([local.create(local.Settings(mode="loopback"), Path("/no/state"))], census) == 0.0
