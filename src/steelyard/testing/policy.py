"""Contract tests of a scaling policy; authors of policies inherit them.

    class TestMyPolicy(PolicyContract):
        module = "path/to/my_policy.py"         # module name, entry point or path, as in a study
        settings = {"metric": "cpu_percent_mean", "threshold": 80}

Nothing is started: the policy is asked about histories that are drawn from a seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ValidationError

from steelyard.field_docs import field_docs
from steelyard.model.scaling import Desired, Point, Supply
from steelyard.plugins.find import Plugins, any_file
from steelyard.policy.base import Bounds, History, Policy, asked, bounded, known

SEEDS = range(6)
PERIODS = 40
LENGTH_S = 600.0
"""Length of a history without a metric."""
SHIFT_S = 4096.0
REPLICATION = 2


class PolicyContract:
    """Inherit it and set `module`; everything else has a default."""

    module: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the policy, as a study gives them."""
    bounds: ClassVar[Bounds] = Bounds(nodes=3, min_nodes=2, max_nodes=9)
    values: ClassVar[tuple[float, float]] = (0.0, 100.0)
    """Between which values the metric is drawn."""
    constant: ClassVar[bool] = False
    """Whether it never desires another size than that of the beginning."""
    by_the_clock: ClassVar[bool] = False
    """Whether settings contain times of the measured phase, so that answers do not shift with the history."""

    def model(self) -> type[BaseModel]:
        """The settings that the policy takes."""
        return Plugins(trust=any_file).settings_model("policy", self.module)

    def policy(self, settings: Mapping[str, Any] | None = None) -> Policy:
        """The policy that a study with these settings would get."""
        module = Plugins(trust=any_file).find("policy", self.module)
        own = module.Settings.model_validate(dict(self.settings if settings is None else settings))
        policy: Policy = module.create(own, self.bounds)
        return policy

    def histories(self) -> Iterator[History]:
        """Histories of trials that followed the policy: a random walk with gaps, and joins that take their time."""
        policy = self.policy()
        low, high = self.values
        for seed in SEEDS:
            random_numbers = random.Random(seed)
            value, points = random_numbers.uniform(low, high), []
            for period in range(PERIODS if policy.metric else 0):
                value += random_numbers.gauss((high - low) / 200, (high - low) / 12)
                value = min(max(value, low), high)
                read = random_numbers.random() > 0.05
                points.append(Point((period + 1) * policy.period_s, value if read else None, 3 if read else 0))
            delay_s = random_numbers.choice((0.0, 0.5, 4.0, 40.0)) * max(policy.period_s, 1.0)
            until_s = _end_s(policy)
            planned = asked(policy, self.bounds, REPLICATION, points, (), until_s)
            supply = [Supply(0.0, self.bounds.nodes)]
            for desired in planned[1:]:
                coming = max(0, desired.nodes - supply[-1].in_service)
                supply.append(Supply(desired.t_s, supply[-1].in_service, coming))
                if desired.t_s + delay_s >= next((each.t_s for each in planned if each.t_s > desired.t_s), until_s):
                    break
                supply.append(Supply(desired.t_s + delay_s, desired.nodes, prepared=desired.prepared))
            yield History(policy.period_s, points, supply, planned)

    def test_says_what_it_is(self) -> None:
        """A name, how often it is asked, and a period if it follows a metric."""
        policy = self.policy()
        assert policy.name
        assert policy.every_s > 0
        assert (policy.period_s > 0) == bool(policy.metric)

    def test_refuses_misspelt_settings(self) -> None:
        """A setting that does not exist is refused before anything starts."""
        with pytest.raises(ValidationError, match="no_such_setting"):
            self.model().model_validate({**self.settings, "no_such_setting": 1})

    def test_every_setting_says_what_it_means(self) -> None:
        """Every setting has a description, which is shown to authors of studies."""
        model = self.model()
        bare = sorted(model.model_fields.keys() - field_docs(model).keys())
        assert not bare, f"no description: {', '.join(bare)}"

    def test_complete_settings_mean_the_same_again(self) -> None:
        """Settings with all defaults filled in, as stored in JSON, give the same answers."""
        complete = json.loads(self.model().model_validate(dict(self.settings)).model_dump_json())
        assert json.loads(self.model().model_validate(complete).model_dump_json()) == complete
        first, again = self.policy(), self.policy(complete)
        for history in self.histories():
            assert _answers(again, history) == _answers(first, history)

    def test_answers_without_a_history(self) -> None:
        """Nothing measured yet is no error; the answer bears the time of the question."""
        policy = self.policy()
        answer = policy.desired(History(policy.period_s, (), (), ()), policy.every_s)
        assert answer.t_s == policy.every_s
        assert isinstance(answer.nodes, int)

    def test_desires_another_size_at_times(self) -> None:
        """Some of the drawn histories make a difference; otherwise `values` and settings test nothing."""
        sizes = {answer.nodes for history in self.histories() for answer in history.desired}
        assert (sizes == {self.bounds.nodes}) == self.constant

    def test_is_the_same_every_time_it_is_asked(self) -> None:
        """An answer follows from the history: it does not depend on what was asked before."""
        policy = self.policy()
        for history in self.histories():
            answers = _answers(policy, history)
            assert _answers(policy, history) == answers
            backwards = {now_s: self.policy().desired(history, now_s) for now_s in reversed(answers)}
            assert backwards == answers

    def test_never_looks_ahead(self) -> None:
        """Later points, nodes and answers change no answer."""
        policy = self.policy()
        for history in self.histories():
            for now_s, answer in _answers(policy, history).items():
                assert policy.desired(known(history, now_s), now_s) == answer, f"at {now_s:g} s"

    def test_does_not_depend_on_the_time_of_day(self) -> None:
        """A history that is later by some seconds gives the same answers, later by as much."""
        policy = self.policy()
        for history in () if self.by_the_clock else self.histories():
            later = _answers(policy, shifted(history, SHIFT_S), SHIFT_S)
            for now_s, answer in _answers(policy, history).items():
                assert later[now_s + SHIFT_S] == answer._replace(t_s=answer.t_s + SHIFT_S)

    def test_a_part_gives_the_first_answers_of_the_whole(self) -> None:
        """A replay until some time gives the answers until then, within the bounds, each with a reason."""
        policy = self.policy()
        for history in self.histories():
            args = (policy, self.bounds, REPLICATION, history.points, history.supply)
            whole = asked(*args, _end_s(policy))
            half_s = _end_s(policy) / 2
            assert asked(*args, half_s) == tuple(each for each in whole if each.t_s <= half_s)
            assert all(bounded(each, self.bounds, REPLICATION) == each for each in whole)
            assert all(each.reason for each in whole[1:]), "a change of size has a reason"


def _end_s(policy: Policy) -> float:
    return PERIODS * policy.period_s or LENGTH_S


def _answers(policy: Policy, history: History, from_s: float = 0.0) -> dict[float, Desired]:
    """The answers at all times of the policy, each by its time."""
    count = int(_end_s(policy) / policy.every_s)
    times_s = [from_s + (place + 1) * policy.every_s for place in range(count)]
    return {now_s: policy.desired(history, now_s) for now_s in times_s}


def shifted(history: History, by_s: float) -> History:
    """The same history, later."""
    return history._replace(
        points=[each._replace(t_s=each.t_s + by_s) for each in history.points],
        supply=[
            each._replace(t_s=each.t_s + by_s, ended_s=None if each.ended_s is None else each.ended_s + by_s)
            for each in history.supply
        ],
        desired=[each._replace(t_s=each.t_s + by_s) for each in history.desired],
    )
