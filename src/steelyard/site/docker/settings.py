"""Settings of site `docker`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from steelyard.model.value import Value, later


class Settings(Value):
    """Settings under `[site]` or `[site.docker]` in a study, in addition to `name`, `nodes` and `load_nodes`. Each can
    be a factor, such as `site.network`."""

    image: str = ""
    """Image of the containers, such as `cassandra:5`; empty: one that Steelyard builds from Debian's packages and a
    Java runtime, without a registry."""
    network: Literal["host", "bridge"] = "host"
    """host: containers use the machine's own network, each with a loopback address; bridge: each has a network stack of
    its own on a bridge of the lease."""
    storage: Literal["volume", "overlay"] = "volume"
    """volume: data are in a folder of the machine that the container sees; overlay: they are in the container's own
    layer."""
    cpu_limit: Literal["quota", "cpuset"] = "quota"
    """Enforcement of `node.cpus`. quota: a share of CPU time; cpuset: that many whole cores, which nodes take in
    turn."""
    daemon: Literal["auto", "running", "own"] = "auto"
    """running: the Docker that runs on this machine; own: one that is started for the leases and stopped with the last
    (root); auto: the running one if there is one, otherwise a private one."""
    program: Literal["docker", "podman"] = "docker"
    """The client. podman takes the same words, but no test of Steelyard has run with it."""
    mounts: tuple[str, ...] = ()
    """Further paths of this machine that containers see, read-only, under the same names: a build of the system, for
    example. The agent, every Java and Steelyard's cache are always among them."""
    user_namespaces: bool = later(False)
    """Whether programs in containers may create user namespaces, as a server that refuses root needs where the study
    runs as root (`postgresql`). Docker's filter of system calls is then off."""
    subnet: str = Field(default="10.114", pattern=r"^\d{1,3}\.\d{1,3}$")
    """First two octets of the nodes' addresses with network bridge; with network host, the second one follows 127."""

    @field_validator("subnet")
    @classmethod
    def _two_octets(cls, text: str) -> str:
        first, second = (int(octet) for octet in text.split("."))
        if not 1 <= first <= 223 or first == 127 or second > 255:
            raise ValueError("subnet is the first two octets of an address, such as 10.114")
        if second == 0:
            raise ValueError("the second octet of subnet must not be 0: 127.0 are the load nodes' addresses")
        return text

    @field_validator("mounts")
    @classmethod
    def _absolute(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if relative := [path for path in paths if not path.startswith("/")]:
            raise ValueError(f"mounts are absolute paths, not {', '.join(relative)}")
        return paths
