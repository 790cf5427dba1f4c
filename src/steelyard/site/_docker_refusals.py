"""Why site `docker` cannot lend what is requested, each reason with what mends it. Read-only."""

from __future__ import annotations

import os

from steelyard.leases import register as lease_register
from steelyard.model.errors import EngineError
from steelyard.node import agent, machine_facts
from steelyard.node.folders import cache_folder
from steelyard.site import _cgroup, _docker_daemon, _docker_image, _memory, _this_machine
from steelyard.site._docker_daemon import Looked
from steelyard.site._docker_settings import Settings
from steelyard.site.base import Request, Site, unenforced

MOST_NODES = 250
"""Limit per role: the last octet of an address."""
INSTALL = "Debian: apt-get install docker.io, or `steelyard setup docker`"


def looked(settings: Settings) -> Looked:
    """The running daemon that the settings allow, or why there is none."""
    if settings.daemon == "own":
        return Looked(None, 'site.daemon = "own"')
    return _docker_daemon.running(settings.program)


def refuse(site: Site, settings: Settings, request: Request, memory_mb_per_node: int | None) -> str | None:
    """The first reason against a request; None if there is none."""
    if (most := max(request.database_nodes, request.load_nodes)) > MOST_NODES:
        return f"{most} nodes of one role were requested, but there are addresses for only {MOST_NODES}"
    return (
        _no_agent()
        or _no_daemon(settings)
        or _no_image(settings)
        or _no_network(settings, request)
        or _no_layer(settings)
        or _no_limit(site, settings, request)
        or _memory.too_little(request, request.limits.memory_mb, memory_mb_per_node)
    )


def _no_agent() -> str | None:
    try:
        agent.find()
    except EngineError as error:
        return f"{error.message}: {error.hint}"
    return None


def _no_daemon(settings: Settings) -> str | None:
    if _this_machine.program(settings.program) is None:
        return f"there is no program {settings.program} ({INSTALL})"
    docker = looked(settings)
    if docker.daemon is not None:
        return None
    if "permission denied" in docker.problem.lower():
        return f"{docker.problem}; add this user to the group docker, or run as root"
    if settings.daemon == "running" or settings.program == "podman":
        return f'no {settings.program} is running here: {docker.problem}; start it, or site.daemon = "own" as root'
    lacking = []
    if os.geteuid() != 0 or not lease_register.usable() or not machine_facts.capable("sys_admin"):
        lacking.append("it takes root to start one")
    if _this_machine.program("dockerd") is None:
        lacking.append(f"there is no program dockerd ({INSTALL})")
    if not _cgroup.detect().bases:
        lacking.append("a daemon needs control groups that it may write to")
    if not lacking:
        return None
    return f"no Docker is running here ({docker.problem}), and none can be started: {'; '.join(lacking)}"


def _no_image(settings: Settings) -> str | None:
    if settings.image:
        return None
    reason = _docker_image.lacking(cache_folder())
    return f"there is no image: {reason}" if reason else None


def _no_network(settings: Settings, request: Request) -> str | None:
    if settings.network == "bridge" and request.load_nodes > 1:
        if not machine_facts.capable("net_admin"):
            return "more than one load node on a bridge takes root: their addresses are added to it"
        if _this_machine.program("ip") is None:
            return "more than one load node on a bridge takes the program ip (Debian: apt-get install iproute2)"
    return None


def _no_layer(settings: Settings) -> str | None:
    if settings.storage == "overlay" and os.geteuid() != 0:
        return 'site.storage = "overlay" takes root: the layers of containers belong to it'
    return None


def _no_limit(site: Site, settings: Settings, request: Request) -> str | None:
    cpus, cores = request.limits.cpus, os.cpu_count() or 1
    if cpus is not None:
        if cpus > cores:
            return f"cpus = {cpus:g} a node, but there are {cores} cores"
        if settings.cpu_limit == "cpuset" and cpus != round(cpus):
            return f'cpus = {cpus:g} is not a whole number of cores, which site.cpu_limit = "cpuset" takes'
        if request.limits.limited_when_warm and (reason := _no_throttle(settings)):
            return f'{reason}: node.cpus_from = "start"'
    return unenforced(site, request)


def _no_throttle(settings: Settings) -> str | None:
    """Why the limits of containers that run cannot be set, or None."""
    if settings.cpu_limit == "cpuset":
        return 'site.cpu_limit = "cpuset" binds containers to their cores when they are created'
    return "only root may set the limits of containers that run" if os.geteuid() != 0 else None
