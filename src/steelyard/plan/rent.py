"""Money that the nodes of a plan may cost, where their site rents them: shown, refused above a limit, and agreed to
before any is lent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from steelyard.format import count, number
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.plan.abilities import Abilities, requests_of
from steelyard.plan.estimate import PlanEstimate
from steelyard.site.base import Rents

S_PER_H: Final = 3600.0
NO_PRICE: Final = "declare cost.price_per_node_hour and cost.currency: what a node costs is not known"


class Rent(NamedTuple):
    """Rented nodes of a plan."""

    starts: int
    nodes: int
    """Most nodes at a time."""
    hours: float
    """Node-hours that all starts may take at most."""
    shortest_h: float
    """Least hours after which the nodes of a start end."""

    def words(self, study: Study) -> str:
        """Its greatest cost in words. Pure."""
        price, what = study.cost.price_per_node_hour, f"{number(self.hours)} node-hours at most"
        price_words = "" if price is None else f", {self.hours * price:,.2f} {study.cost.currency}"
        nodes = count(self.nodes, "rented node")
        return f"{count(self.starts, 'start')} of up to {nodes}: {what}{price_words}"


def rent_of(plan: Plan, abilities: Abilities) -> Rent | None:
    """Rented nodes of a plan; None if there are none."""
    starts = {_start(trial): trial.settings for trial in plan.trials}
    rented: list[tuple[int, float]] = []
    shortest_h = math.inf
    for settings in starts.values():
        requests = requests_of(plan.study, settings, abilities.system(settings))
        pairs = zip(abilities.sites(settings), requests, strict=True)
        counts = [
            (request.database_nodes + request.load_nodes, site.most_hours)
            for site, request in pairs
            if isinstance(site, Rents)
        ]
        if counts:
            rented.append((sum(nodes for nodes, _ in counts), sum(nodes * hours for nodes, hours in counts)))
            shortest_h = min(shortest_h, *(hours for _, hours in counts))
    if not rented:
        return None
    return Rent(len(rented), max(nodes for nodes, _ in rented), sum(hours for _, hours in rented), shortest_h)


def refusals(study: Study, plan: Plan, abilities: Abilities, cost: PlanEstimate) -> Iterator[StudyError]:
    """Errors for a plan whose nodes would end before a start does, or that may cost more than its limit."""
    limit, price = study.design.cost_limit, study.cost.price_per_node_hour
    rent = rent_of(plan, abilities)
    if rent is None:
        return
    trials = max(Counter(_start(trial) for trial in plan.trials).values())
    start_h = (max(cost.start_s.values()) + trials * cost.trial_s) / S_PER_H
    if start_h > rent.shortest_h:
        yield StudyError(
            f"a start of {count(trials, 'trial')} takes about {start_h:.2f} h, and its rented nodes end after "
            f"{rent.shortest_h:.2f} h",
            "a larger site.most_hours, fewer trials in a start (design.trials), or shorter ones", key="site.most_hours",
        )  # fmt: skip
    if limit is None:
        return
    if price is None:
        yield StudyError("design.cost_limit needs a price", NO_PRICE, key="design.cost_limit", read=limit)
    elif rent.hours * price > limit:
        yield StudyError(
            f"design.cost_limit = {limit:g}: {rent.words(study)}", "a smaller site.most_hours, fewer starts or nodes",
            key="design.cost_limit", read=limit,
        )  # fmt: skip


def notes(study: Study, plan: Plan, abilities: Abilities, seconds: float) -> Iterator[str]:
    """Sentences on what rented nodes cost; `seconds`: expected time of the whole plan."""
    rent = rent_of(plan, abilities)
    if rent is None:
        return
    yield rent.words(study)
    price = study.cost.price_per_node_hour
    if price is None:
        yield NO_PRICE
    else:
        expected = seconds / S_PER_H * rent.nodes * price
        yield f"if the plan takes as long as expected, about {expected:,.2f} {study.cost.currency}"


def _start(trial: PlannedTrial) -> str:
    """Name of its lease: a trial that ends its start has one of its own."""
    return trial.id if trial.settings.ends_start else trial.start


def bill(study: Study, plan: Plan, abilities: Abilities) -> str:
    """Cost to which the user must agree before anything is lent; empty if nothing is rented."""
    rent = rent_of(plan, abilities)
    return "" if rent is None else rent.words(study)
