"""Histories as literals, and policies by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from steelyard.model.scaling import Desired, Point, Supply
from steelyard.policy.base import Bounds, History, Policy

BOUNDS = Bounds(nodes=3, min_nodes=1, max_nodes=20)


def policy_named(name: str, bounds: Bounds = BOUNDS, **settings: Any) -> Policy:
    """A shipped policy under its settings."""
    module = importlib.import_module(f"steelyard.policy.{name.replace('-', '_')}")
    policy: Policy = module.create(module.Settings(**settings), bounds)
    assert policy.name == name
    return policy


def points(values: Sequence[float | None], period_s: float, nodes: int = 3) -> tuple[Point, ...]:
    """Points of periods from 0 on."""
    return tuple(
        Point((place + 1) * period_s, value, 0 if value is None else nodes) for place, value in enumerate(values)
    )


def history(
    policy: Policy, values: Sequence[float | None], supply: Sequence[Supply] = (), desired: Sequence[Desired] = ()
) -> History:
    """The history of a policy that saw these values of its metric."""
    return History(policy.period_s, points(values, policy.period_s), supply, desired)


def sizes(policy: Policy, values: Sequence[float | None]) -> list[int]:
    """The size desired after each value, if nothing was desired before."""
    return [
        policy.desired(history(policy, values[: place + 1]), (place + 1) * policy.period_s).nodes
        for place in range(len(values))
    ]
