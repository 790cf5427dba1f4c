"""Reasons why site `docker` cannot lend a request, each with a hint. Read-only."""

from __future__ import annotations

import os

from steelyard.leases import register as lease_register
from steelyard.model.errors import EngineError
from steelyard.node import agent, machine_facts
from steelyard.node.folders import cache_folder
from steelyard.site.base import Refusal, Request, Site, unenforced
from steelyard.site.docker import daemon as docker_daemon
from steelyard.site.docker import image
from steelyard.site.docker.daemon import Daemon, Looked
from steelyard.site.docker.settings import Settings
from steelyard.site.kernel import cgroup, memory, processors, programs

MOST_NODES = 250
"""Limit per role: the last octet of an address."""
OWN = 'site.daemon = "own"'
INSTALL = "Debian: apt-get install docker.io, or `steelyard setup docker`"


def looked(settings: Settings) -> Looked:
    """The running daemon that the settings allow, or why there is none."""
    if settings.daemon == "own":
        return Looked(None, OWN)
    return docker_daemon.running(settings.program)


def refuse(site: Site, settings: Settings, request: Request, memory_mb_per_node: int | None) -> str | None:
    """The first reason against a request; None if there is none."""
    if (most := max(request.database_nodes, request.load_nodes)) > MOST_NODES:
        return f"{most} nodes of one role were requested, but only {MOST_NODES} addresses are available"
    return (
        _no_agent()
        or no_daemon(settings)
        or Refusal.at("site.image", no_image(settings))
        or Refusal.at("site.load_nodes", _no_network(settings, request))
        or Refusal.at("site.storage", _no_layer(settings))
        or _no_limit(site, settings, request)
        or memory.refusal(request, request.limits.memory_mb, memory_mb_per_node)
    )


def notes(settings: Settings) -> list[str]:
    """First steps of a lease that nothing refuses: start a daemon, pull or build an image."""
    if no_daemon(settings) is not None or no_image(settings) is not None:
        return []
    docker, client, own = looked(settings), programs.program("docker"), docker_daemon.ours()
    daemon, others = docker.daemon, [ignored] if (ignored := _ignored(settings, docker)) else []
    if daemon is None and client is not None and docker_daemon.lives(own):
        daemon = Daemon(client, own.address, own=True)
    if daemon is not None:
        return others + ([] if image.is_here(daemon, settings.image) else _not_here(settings, daemon))
    asked = OWN if settings.daemon == "own" else "no Docker runs here"
    starts = f"{asked}: `run` starts its own Docker daemon, as root, and ends it with its last lease"
    return [*others, starts, *_not_here(settings, None)]


def _ignored(settings: Settings, docker: Looked) -> str:
    """The daemon used although the environment names another, with the reason; empty if it names none."""
    wanted = os.environ.get(docker_daemon.HOST_VARIABLE, "")
    if not wanted or settings.program == "podman":
        return ""
    if docker.daemon is not None:
        return (
            f"the containers are made by the Docker that {docker_daemon.HOST_VARIABLE} names, {docker.daemon.address}"
        )
    if settings.daemon == "own":
        named = f"{docker_daemon.HOST_VARIABLE} = {docker_daemon.shown(wanted)!r}"
        return f"{named} is ignored because of {OWN}"
    return f"{docker.problem}; the containers are made by a Docker daemon of Steelyard's own instead ({docker.hint})"


def _not_here(settings: Settings, daemon: Daemon | None) -> list[str]:
    """Step for an image that a daemon does not have; None: the daemon does not run, so its images are unknown."""
    if not settings.image:
        built = image.archive(cache_folder(), image.recipe()).is_file()
        hint = "a minute or two, once (`steelyard setup docker` does so now)"
        return [] if built else [f"Steelyard's own image is not built yet: `run` builds it, {hint}"]
    pulls = "`run` pulls it from its registry"
    if daemon is None:
        return [f"whether that daemon has the image {settings.image} is known once it runs: if not, {pulls}"]
    now = f"`docker pull {settings.image}` shows now whether it is available"
    return [
        f"the image {settings.image} is not on the Docker that runs here: {pulls}" + ("" if daemon.own else f" ({now})")
    ]


def _no_agent() -> str | None:
    try:
        agent.find()
    except EngineError as error:
        return f"{error.message}: {error.hint}"
    return None


def no_daemon(settings: Settings) -> Refusal | None:
    """Reason why no daemon can be used or started, at the setting that is at fault; None if one can."""
    if programs.program(settings.program) is None:
        return Refusal(f"program {settings.program} not found ({INSTALL})", "site.program")
    docker = looked(settings)
    return None if docker.daemon is not None else Refusal.at("site.daemon", _not_to_be_had(settings, docker))


def _not_to_be_had(settings: Settings, docker: Looked) -> str | None:
    """Reason why no daemon can be used or started; None if one can be started."""
    if "permission denied" in docker.problem.lower():
        return f"{docker.problem}; add this user to the group docker, or run as root"
    if settings.daemon == "running" or settings.program == "podman":
        hint = docker.hint or "start it"
        return f"{settings.program} on this machine cannot be used: {docker.problem}; {hint}, or {OWN} as root"
    lacking = []
    if os.geteuid() != 0 or not lease_register.usable() or not machine_facts.capable("sys_admin"):
        lacking.append("starting one needs root")
    if programs.program("dockerd") is None:
        lacking.append(f"program dockerd not found ({INSTALL})")
    if not cgroup.detect().bases:
        lacking.append("a daemon needs writable control groups")
    if not lacking:
        return None
    hint = f"; {docker.hint}" if docker.hint else ""
    return f"no Docker is running here ({docker.problem}), and none can be started: {'; '.join(lacking)}{hint}"


def no_image(settings: Settings) -> str | None:
    """Reason why Steelyard's own image is neither present nor can be built, if the settings name no other."""
    if settings.image:
        return None
    reason = image.lacking(cache_folder())
    return f"no image: {reason}" if reason else None


def _no_network(settings: Settings, request: Request) -> str | None:
    if settings.network == "bridge" and request.load_nodes > 1:
        if not machine_facts.capable("net_admin"):
            return "more than one load node on a bridge needs root: their addresses are added to it"
        if programs.program("ip") is None:
            return "more than one load node on a bridge needs the program ip (Debian: apt-get install iproute2)"
    return None


def _no_layer(settings: Settings) -> str | None:
    if settings.storage == "overlay" and os.geteuid() != 0:
        return 'site.storage = "overlay" needs root, who owns the layers of containers'
    return None


def _no_limit(site: Site, settings: Settings, request: Request) -> str | None:
    cpus, quota, cores = request.limits.cpus, settings.cpu_limit == "quota", os.cpu_count() or 1
    if (how := request.limits.cpu_limit) is not None:
        words = f'node.cpu_limit = "{how}": for containers, site.cpu_limit = "{how}" sets how processors are limited'
        return Refusal(words, "node.cpu_limit")
    if cpus is not None and (beyond := processors.too_many(cpus, request.dilation, quota=quota, usable=cores)):
        return beyond
    if cpus is not None and quota and (below := processors.too_few(cpus)):
        return below
    if settings.cpu_limit == "cpuset" and request.database_nodes and (reason := _no_cores(cpus)):
        return Refusal(reason, "site.cpu_limit")
    if cpus is not None and request.limits.processors_from_warm and (reason := _no_throttle(settings)):
        return Refusal(f'{reason}: node.cpus_from = "start"', "node.cpus_from")
    return unenforced(site, request)


def _no_cores(cpus: float | None) -> str | None:
    """Reason why nodes cannot be bound to whole cores, or None."""
    if cpus is None:
        return 'site.cpu_limit = "cpuset" has no effect without node.cpus, the number of cores of a node'
    if cpus != round(cpus):
        return f'cpus = {cpus:g} is not a whole number of cores, which site.cpu_limit = "cpuset" needs'
    if os.geteuid() == 0 and not cgroup.detect().has("cpuset"):
        return 'this machine shows no controller cpuset, which site.cpu_limit = "cpuset" needs: "quota" needs none'
    return None


def _no_throttle(settings: Settings) -> str | None:
    """Reason why the limits of running containers cannot be set, or None."""
    if settings.cpu_limit == "cpuset":
        return 'site.cpu_limit = "cpuset" binds containers to their cores when they are created'
    return "only root may set the limits of running containers" if os.geteuid() != 0 else None
