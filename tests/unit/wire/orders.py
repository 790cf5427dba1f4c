"""Orders: the shared example with changes, and the form in which the agent gets one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard.wire.order import CqlTarget, Order
from tests.unit.workload.reference import EXAMPLE


def order(example: Mapping[str, Any] = EXAMPLE, **changes: Any) -> Order:
    """The example with other fields of its own and of its target."""
    target = {name: changes.pop(name) for name in CqlTarget.model_fields if name in changes}
    return Order.model_validate({**example, "target": {**example["target"], **target}, **changes})


def sent(asked: Order) -> dict[str, Any]:
    """What the agent reads."""
    found: dict[str, Any] = json.loads(asked.text)
    return found
