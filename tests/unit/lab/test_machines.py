"""How nodes are spread over machines: by the kernels that they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.lab.members import Members
from steelyard.lab.trial import TrialRunner
from steelyard.node.base import Node

NODES = tuple(Node(name, "database", "10.0.0.1", (), Path("/nodes") / name) for name in ("n1", "n2"))
LOADERS = (Node("l1", "load", "10.0.0.9", (), Path("/nodes/l1")),)


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (("", ""), {"n1": "", "n2": "", "l1": ""}),
        (("box", "box"), {"n1": "box", "n2": "box", "l1": ""}),
        (("box", ""), {"n1": "box", "n2": "", "l1": ""}),
    ],
    ids=["this machine", "two on a box", "one elsewhere"],
)
def test_machines_follow_from_kernels(kernels: tuple[str, ...], expected: dict[str, str]) -> None:
    databases = tuple(replace(node, kernel=kernel) for node, kernel in zip(NODES, kernels, strict=True))
    cluster: Any = SimpleNamespace(
        members=Members(databases),
        loaders=LOADERS,
        reachable=(*databases, *LOADERS),
        facts={"n1": {"cores": "4"}, "l1": {"cores": "unknown"}},
    )
    unused: Any = None
    machines = TrialRunner(unused, cluster, unused, unused)._machines()
    assert machines.kernels == expected
    assert machines.cores == {"n1": 4}
