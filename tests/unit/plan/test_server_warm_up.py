"""Whether servers are warmed up is decided once, and a store goes on as it began."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.changed_study import refuse_change
from steelyard.plan.preflight import server_warm_up_decided
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, study

COLD = ServerWarmUp(mode="off")


@pytest.mark.parametrize(
    ("system", "mode", "decided"),
    [
        ("cassandra", "auto", "on"),
        ("simulated", "auto", "auto"),
        ("simulated", "on", "on"),
        ("cassandra", "off", "off"),
    ],
)
def test_auto_is_on_for_systems_that_compile_code(system: str, mode: str, decided: str) -> None:
    asked = study(system={"name": system}, server_warm_up={"mode": mode, "deadline_s": 5})
    begun = server_warm_up_decided(asked, expand(asked), None, Abilities()).server_warm_up
    assert begun.mode == decided
    assert begun.deadline_s == 5


def test_a_store_goes_on_as_it_began() -> None:
    asked = study(system={"name": "cassandra"})
    assert server_warm_up_decided(asked, expand(asked), COLD, Abilities()).server_warm_up == COLD


def test_no_trial_is_called_otherwise() -> None:
    settings = [study(server_warm_up={"mode": mode}) for mode in ("on", "off")]
    assert plan_of(settings[0]) == plan_of(settings[1]) == plan_of(study())


def test_another_server_warm_up_than_the_sealed_trials_had_is_refused() -> None:
    began = study(server_warm_up={"mode": "on"})
    plan = plan_of(began)
    sealed = [record(plan.trials[0])]
    for silent in (study(), began, study(server_warm_up={"mode": "auto"})):
        refuse_change(began, silent, plan, sealed)
    refuse_change(began, study(server_warm_up={"mode": "off"}), plan, [])
    for other in ({"mode": "off"}, {"mode": "on", "deadline_s": 5}):
        with pytest.raises(StudyError, match=r"\[server_warm_up\] is not what the store's 1 sealed"):
            refuse_change(began, study(server_warm_up=other), plan, sealed)
    with pytest.raises(StudyError, match="server_warm_up"):
        refuse_change(study(server_warm_up={"mode": "off"}), began, plan, sealed)
