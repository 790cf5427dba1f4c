"""Facts of a node's machine as the machine itself reports them: one command sends the texts that they are made from."""

from __future__ import annotations

import json

from steelyard.model.errors import CommandFailed
from steelyard.node import agent, machine_facts
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.node.machine_texts import Received, Sources, Texts
from steelyard.site.kernel import kernel_settings

FACTS_TIMEOUT_S = 60.0
SCRIPT = 'uname -m && uname -r && exec "$1" files texts $2'
"""The second argument is a list of patterns, which the shell there expands."""
ONLINE = "/sys/devices/system/cpu/online"


async def of_node(node: Node) -> dict[str, str]:
    """Facts of the machine that a node is on. Raises CommandFailed."""
    sources = Sources()
    facts_of(sources, str(node.folder), "", "")
    argv = ["sh", "-c", SCRIPT, "facts", agent.on(node), " ".join(sources.patterns)]
    done = await run(node, argv, timeout_s=FACTS_TIMEOUT_S, watch=True)
    try:
        architecture, kernel, texts = done.stdout.decode(errors="replace").split("\n", 2)
        received = Received(json.loads(texts))
    except ValueError as error:
        raise CommandFailed(node.name, argv[:4], done.exit_code, f"unexpected answer: {error}") from error
    return facts_of(received, str(node.folder), architecture, kernel)


def facts_of(texts: Texts, folder: str, architecture: str, kernel: str) -> dict[str, str]:
    """Facts of the machine that sent these texts; `folder` is the node's, as the node sees it. Pure."""
    cores = machine_facts.online(texts.text(ONLINE) or _processors(texts.text("/proc/cpuinfo")))
    board = texts.text("/proc/device-tree/model")
    return {
        **kernel_settings.facts_of(texts),
        **kernel_settings.limits_of(texts.text("/proc/self/limits")),
        **machine_facts.facts_of(texts, cores=cores, kernel=kernel, architecture=architecture),
        **kernel_settings.disk_of(texts, folder),
        **({"board": board} if board else {}),
    }


def _processors(cpuinfo: str) -> str:
    """The kernel's list of processors, from /proc/cpuinfo."""
    return f"0-{max(1, sum(line.startswith('processor') for line in cpuinfo.splitlines())) - 1}"
