"""The campaign of orders: 500 mutated orders, each given to the agent's `load` and `ops`."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from tools.campaigns.agent_call import EXAMPLES, call_agent, example
from tools.campaigns.campaign import Case, Outcome, no_world

CASES: Final = 500
LIMIT_S: Final = 30.0
CALL_LIMIT_S: Final = 12.0
NOBODY: Final = "127.0.0.1:1"
"""Where nothing listens: what is understood ends at once, for want of a server."""
ODD_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 5, 2**31, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, 1e-308, float("nan"), float("inf"),
    "", "x", "a b", "\u0000", "\u202e", "x" * 100_000, "9" * 400, [], {}, [[]], [None], ["x"], {"x": 1}, {"kind": "x"},
    "closed", "uniform", "127.0.0.1", ":", "'; DROP TABLE x; --",
)  # fmt: skip
DEEP: Final = "a nested value"
STRATA: Final = ("an odd value", "a missing key", "a key too many", "a nested order", "other characters")


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every value in a tree."""
    items: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    return [place for name, inner in items for place in ((*path, name), *_places(inner, (*path, name)))]


def mutated(order: dict[str, Any], stratum: str, rng: random.Random) -> bytes:
    """The order with one to three defects of a kind."""
    order = copy.deepcopy(order)
    for _ in range(rng.randint(1, 3)):
        places = [place for place in _places(order) if place[0] != "contacts"]
        *outer, last = rng.choice(places)
        holder: Any = order
        for name in outer:
            holder = holder[name]
        if stratum == "a missing key":
            del holder[last]
        elif stratum == "a key too many" and isinstance(holder, dict):
            holder[rng.choice(("x", "kind", "records", "k" * 10_000))] = rng.choice(ODD_VALUES)
        elif stratum == "a nested order":
            holder[last] = DEEP
        else:
            holder[last] = rng.choice(ODD_VALUES)
    depth = rng.choice((2, 50, 500, 5000))
    opened, closed = rng.choice((("[", "]"), ('{"x":', "}")))
    content = json.dumps(order).replace(f'"{DEEP}"', f"{opened * depth}1{closed * depth}").encode()
    if stratum != "other characters":
        return content
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        changed[at : at + rng.randint(0, 2)] = rng.choice(
            (b"\xff", b"\x00", b'"', b"{", b"[" * 3000, b",", b"\xef\xbb\xbf")
        )
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed)


class Orders:
    """Mutated orders against the agent."""

    name = "orders"
    about = f"{CASES} mutated orders against the agent's `load` and `ops`"
    limit_s = LIMIT_S

    def cases(self, seed: int) -> Sequence[Case]:
        """Each example and mutation alike often."""
        return [
            Case(f"{n:03}", STRATA[n % len(STRATA)], {"base": EXAMPLES[n % len(EXAMPLES)], "seed": seed + n})
            for n in range(CASES)
        ]

    def world(self, folder: Path) -> AbstractContextManager[None]:
        """Nothing is shared."""
        return no_world(folder)

    def run(self, world: None, case: Case, folder: Path) -> Outcome:
        """Mutate, and give it to both commands."""
        rng = random.Random(case.values["seed"])
        content = mutated(example(case.values["base"], NOBODY), case.stratum, rng)
        load = call_agent(content, folder, "load", limit_s=CALL_LIMIT_S)
        ops = call_agent(content, folder, "ops", "--count", "20", "--values", limit_s=CALL_LIMIT_S)
        # 1: the order is wrong; 3: nobody answers.
        findings = [*load.findings((0, 1, 3)), *ops.findings((0, 1))]
        return Outcome(findings, {"calls": [load.facts(), ops.facts()], "seed": case.values["seed"]})


CAMPAIGN: Final = Orders()
