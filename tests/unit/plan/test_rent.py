"""Money that a plan may cost: shown, refused above a limit, and agreed to before anything is lent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.lab.session import begin
from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plan import rent
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import estimate
from steelyard.plugins.find import Plugins
from tests.unit.lab.fakes import plan_of, study
from tests.unit.small_study import SMALL_STUDY

RENTED: dict[str, Any] = {
    "site": {"name": "ec2", "region": "eu-north-1", "most_hours": 2.0, "load_nodes": 1},
    "system": {"name": "simulated"},
    "factors": {"nodes": [1, 3]},
}
PRICE = {"price_per_node_hour": 0.1, "currency": "USD"}


def rented(tmp_path: Path, **changes: Any) -> tuple[Study, list[str], list[StudyError]]:
    a_study = study(**{**RENTED, **changes})
    plan = plan_of(a_study)
    abilities = Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)
    notes = list(rent.notes(a_study, plan, abilities, 1800.0))
    cost = estimate(plan, a_study, cores=2, abilities=abilities)
    return a_study, notes, list(rent.refusals(a_study, plan, abilities, cost))


def test_the_most_is_the_starts_times_their_nodes_times_their_longest_life(tmp_path: Path) -> None:
    """Two starts per block, of 2 and of 4 nodes, the load node included, for 2 h 10 min."""
    a_study, notes, refused = rented(tmp_path, cost=PRICE)
    assert a_study.design.starts == 2
    assert notes[0] == "4 starts of up to 4 rented nodes: 26.00 node-hours at most, 2.60 USD"
    assert notes[1] == "if the plan takes as long as expected, about 0.20 USD"
    assert refused == []


def test_a_limit_refuses_what_may_cost_more(tmp_path: Path) -> None:
    (error,) = rented(tmp_path, cost=PRICE, design={"starts": 2, "cost_limit": 2.5})[2]
    assert error.message.startswith("design.cost_limit = 2.5: 4 starts of up to 4 rented nodes: 26.00 node-hours")
    assert error.key == "design.cost_limit"
    assert rented(tmp_path, cost=PRICE, design={"starts": 2, "cost_limit": 2.7})[2] == []


def test_a_start_that_outlives_its_nodes_is_refused(tmp_path: Path) -> None:
    site = {**RENTED["site"], "most_hours": 0.01}
    long = {"duration_s": 600}
    (error,) = rented(tmp_path, site=site, load=long)[2]
    assert error.message.startswith("a start of 2 trials takes about ")
    assert error.message.endswith("h, and its rented nodes end after 0.18 h")
    assert error.key == "site.most_hours"
    assert rented(tmp_path, load=long)[2] == []


def test_without_a_price_nothing_is_known(tmp_path: Path) -> None:
    _, notes, _ = rented(tmp_path)
    assert notes[1].startswith("declare cost.price_per_node_hour")
    (error,) = rented(tmp_path, design={"cost_limit": 10})[2]
    assert error.message == "design.cost_limit needs a price"


def test_other_sites_cost_nothing(tmp_path: Path) -> None:
    _, notes, refused = rented(tmp_path, site={"name": "local"}, design={"cost_limit": 0.01})
    assert (notes, refused) == ([], [])


@pytest.mark.parametrize("limit", ["", "cost_limit = 0.001\n"])
def test_nothing_is_begun_without_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    asked: list[str] = []
    path = tmp_path / "study.toml"
    path.write_text(
        SMALL_STUDY.replace('name = "local"', 'name = "ec2"').replace("starts = 2\n", f"starts = 2\n{limit}")
    )
    with pytest.raises(StudyError, match=r"agreed|cost_limit"), begin(path, tmp_path / "store", agree=asked.append):  # type: ignore[arg-type]
        raise AssertionError
    assert len(asked) == (0 if limit else 1)
