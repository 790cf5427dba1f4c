"""How nodes are spread over machines: by the kernels that they name, else by what their site shares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.lab.trial import TrialRunner
from steelyard.node.base import Node

NODES = tuple(Node(name, "database", "10.0.0.1", (), Path("/nodes") / name) for name in ("n1", "n2"))
LOADERS = (Node("l1", "load", "10.0.0.9", (), Path("/nodes/l1")),)


@pytest.mark.parametrize(
    ("shares", "kernels", "expected"),
    [
        ({"cpu"}, ("", ""), {"n1": "", "n2": "", "l1": ""}),
        (set(), ("", ""), {"n1": "n1", "n2": "n2", "l1": "l1"}),
        (set(), ("box", "box"), {"n1": "box", "n2": "box", "l1": "l1"}),
        ({"cpu"}, ("box", ""), {"n1": "box", "n2": "", "l1": ""}),
    ],
    ids=["this machine", "apart", "two on a box", "one elsewhere"],
)
def test_machines_follow_from_kernels(shares: set[str], kernels: tuple[str, ...], expected: dict[str, str]) -> None:
    databases = tuple(replace(node, kernel=kernel) for node, kernel in zip(NODES, kernels, strict=True))
    cluster: Any = SimpleNamespace(
        databases=databases,
        loaders=LOADERS,
        reachable=(*databases, *LOADERS),
        site_of=lambda node: SimpleNamespace(shares=shares),
        facts={"n1": {"cores": "4"}, "l1": {"cores": "unknown"}},
    )
    unused: Any = None
    machines = TrialRunner(unused, cluster, unused, unused)._machines()
    assert machines.kernels == expected
    assert machines.cores == {"n1": 4}
