"""What a stopping rule costs and covers: the simulation against the rule itself, and against its kept figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.judging.stopping import SIMULATED_COVERAGE_PERCENT, Rule, decide, rule_of
from steelyard.plan.stopping_forecast import expected, likely_blocks, starts_for, stopped
from tests.unit.judging.test_stopping import expand, judged, record, sealed, spread, study


def rule(floor: int = 10, width: float = 2.0) -> Rule:
    return Rule(
        response="execution_time_ms", width_percent=width, least_starts=floor, confidence=0.95, warm_up_trials=0,
        attempts=3,
    )  # fmt: skip


def test_simulated_studies_stop_where_the_rule_stops_them() -> None:
    cap = 30
    asked = study(starts=cap, until={"width_percent": 4.0}, factors={"nodes": [1, 3]})
    plan, the_rule = expand(asked), rule_of(asked)
    assert the_rule is not None
    many = stopped(the_rule, cap=cap, cv=0.08, cells=2, studies=25, seed=11)
    rng = np.random.default_rng(11)
    drawn = {nodes: 1 + 0.08 * rng.standard_normal((25, cap)) for nodes in (1, 3)}
    assert len(set(many.blocks)) > 3
    for number in range(25):
        records = [
            record(trial, 1000.0 * drawn[int(trial.treatment["nodes"])][number, trial.block - 1])
            for trial in plan.trials
        ]
        found = decide(plan, records, the_rule)
        assert (found.blocks, found.why == "narrow") == (many.blocks[number], many.narrow[number])


@pytest.mark.parametrize(("floor", "least"), SIMULATED_COVERAGE_PERCENT.items())
def test_the_kept_coverage_is_what_simulation_gives(floor: int, least: float) -> None:
    """At the CV where it is least; two standard errors of 6,000 studies are 0.8%."""
    cv = {2: 0.035, 6: 0.045, 10: 0.05, 20: 0.06}[floor]
    many = stopped(rule(floor), cap=80, cv=cv, studies=6000, seed=5)
    assert 100 * many.coverage == pytest.approx(least, abs=1.2)


def test_no_selection_no_loss() -> None:
    """Where the floor or the cap decides, the interval is an ordinary one."""
    for cv, cap in ((0.002, 40), (0.5, 12)):
        assert stopped(rule(), cap=cap, cv=cv, studies=6000, seed=2).coverage == pytest.approx(0.95, abs=0.01)


def test_blocks_that_are_expected_grow_with_the_cv_and_keep_to_floor_and_cap() -> None:
    found = expected(rule(), cap=60, cells=3, cvs=(0.005, 0.04, 0.06, 0.5))
    assert (found[0].low, found[0].high, found[0].unreached) == (10, 10, 0)
    assert 10 < found[1].low <= found[1].middle <= found[1].high < found[2].high
    assert (found[3].low, found[3].unreached) == (60, 1)
    assert expected(rule(), cap=60, cells=3, cvs=(0.04,)) == expected(rule(), cap=60, cells=3, cvs=(0.04,))


def test_starts_for_a_known_spread_solve_the_formula() -> None:
    n = starts_for(0.05, rule(), 1000)
    half = [100 * stats.t.ppf(0.975, m - 1) * 0.05 / m**0.5 for m in (n - 1, n)]
    assert half[0] > 2.0 >= half[1]
    assert starts_for(0.0, rule(), 1000) == 10
    assert starts_for(9.0, rule(), 33) == 33


def test_what_is_likely_lies_between_what_is_needed_and_the_cap() -> None:
    asked = study(starts=40)
    plan = expand(asked)
    assert likely_blocks(judged(asked, [])) == 6
    going = judged(asked, sealed(plan, spread(0.5), blocks=6))
    assert going.go_on
    assert going.needed < likely_blocks(going) <= 40
    ended = judged(asked, sealed(plan, spread(0.01), blocks=6))
    assert likely_blocks(ended) == ended.blocks
