from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from steelyard.judging.noise_floor import Circumstances, KeptFloor, Spread
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.plan import Machine, expand, resolution
from steelyard.plan.abilities import Abilities
from steelyard.plan.detectable_difference import detectable_effect, within_starts_cv
from steelyard.plan.estimate import estimate
from steelyard.plan.phase_times import corrections, start_phases
from steelyard.plugins.find import Plugins
from tests.unit.small_study import refused_on
from tests.unit.study.paper import study

LARGE = Machine(cores=2, memory_mb=64_000, disk_free_bytes=10**12)
FACTORS = "[factors]\nnodes = [1, 3]\nload.threads = [1, 2]\n"


def record(trial: PlannedTrial, seconds: float, *, start_s: float | None = None, outcome: str = "valid") -> TrialRecord:
    phases = [PhaseTime(phase=Phase.MEASURE, entered_s=100.0, left_s=100.0 + seconds)]
    if start_s is not None:
        phases.append(PhaseTime(phase=Phase.DEPLOY, entered_s=0.0, left_s=start_s))
    return TrialRecord(
        id=trial.id,
        study="paper",
        treatment=trial.treatment,
        hard=trial.hard,
        settings=trial.settings,
        block=trial.block,
        planned_start=trial.start,
        start=trial.start,
        start_replicate=trial.start_replicate,
        replicate=trial.replicate,
        position=trial.position,
        order_in_start=1,
        seed=trial.seed,
        begun_s=0.0,
        phases=tuple(phases),
        verdict=Verdict.model_validate({"outcome": outcome}),
        responses=Responses(execution_time_ms=seconds * 1000),
    )


def planned(rest: str = FACTORS) -> tuple[Study, Plan]:
    asked = study(rest)
    return asked, expand(asked)


def test_without_history_the_range_is_wide_and_says_so() -> None:
    asked, plan = planned()
    cost = estimate(plan, asked, cores=2)
    assert cost.source == "default rates"
    assert (cost.trials, cost.starts, cost.trials_done) == (24, 4, 0)
    assert cost.seconds == pytest.approx(cost.whole_s)
    assert cost.low_s < cost.seconds / 2
    assert cost.high_s > cost.seconds * 2
    assert cost.start_s[3] > cost.start_s[1]


def test_more_work_takes_longer() -> None:
    small, plan = planned()
    large, larger = planned(FACTORS + "load.operations = [1000, 9000]\n")
    assert estimate(larger, large, cores=2).whole_s > 2 * estimate(plan, small, cores=2).whole_s
    assert estimate(plan, small, cores=8).whole_s < estimate(plan, small, cores=2).whole_s


def test_only_the_first_start_that_takes_a_snapshot_is_started_twice() -> None:
    restored, plan = planned()
    filling = estimate(plan, restored, cores=2).start_s[3]
    reload, anew = planned('[data]\nstate = "reload"\n' + FACTORS)
    empty, emptied = planned('[data]\nstate = "truncate"\n' + FACTORS)
    refilling, nothing = (estimate(p, s, cores=2).start_s[3] for p, s in ((anew, reload), (emptied, empty)))
    assert filling > 1.3 * refilling
    assert refilling > nothing
    assert estimate(anew, reload, cores=2).trial_s > estimate(plan, restored, cores=2).trial_s + 1.5


def test_a_start_that_was_filled_corrects_two_deployments() -> None:
    """Only such a start is wiped before its first trial; of two starts as expected none changes the estimate."""
    _, plan = planned()
    starts = list({trial.start: trial for trial in plan.trials if trial.settings.root["site"]["nodes"] == 1}.values())
    deploy_s = start_phases(starts[0].settings, Abilities(Plugins()), 2, has_snapshot=True)[Phase.DEPLOY]
    wiped = PhaseTime(phase=Phase.WIPE, entered_s=0.0, left_s=0.4)
    first, second = (record(trial, 1.0, start_s=deploy_s * n) for trial, n in zip(starts, (2, 1), strict=True))
    first = first.model_copy(update={"phases": (*first.phases, wiped)})
    known = corrections([first, second], Abilities(Plugins()), 2)
    assert known.factor[Phase.DEPLOY] == pytest.approx(1.0)
    assert Phase.WIPE not in known.factor


def test_an_open_schedule_takes_as_long_as_it_says() -> None:
    asked, plan = planned('schedule = "constant"\nrate_per_s = 10\n[design]\nstarts = 1\ntrials = 1\n')
    assert estimate(plan, asked, cores=2).trial_s > 100
    asked, plan = planned('schedule = "constant"\nrate_per_s = 10\nduration_s = 5\n[design]\nstarts = 1\ntrials = 1\n')
    assert estimate(plan, asked, cores=2).trial_s < 20


def test_history_corrects_the_rates_and_counts_as_done() -> None:
    asked, plan = planned()
    one_each = {tuple(trial.treatment.items()): trial for trial in plan.trials}.values()
    history = [record(trial, 50.0, start_s=200.0) for trial in one_each]
    cost = estimate(plan, asked, history, cores=2)
    assert cost.source == f"{len(history)} trials of this store"
    assert cost.trials_done == len(history)
    assert cost.trial_s > 45
    assert min(cost.start_s.values()) > 50
    assert cost.seconds < cost.whole_s
    assert cost.high_s / cost.seconds < 1.5
    assert estimate(plan, asked, [record(trial, 50.0) for trial in plan.trials], cores=2).seconds == 0


def test_invalid_trials_are_no_history() -> None:
    asked, plan = planned()
    cost = estimate(plan, asked, [record(plan.trials[0], 50.0, outcome="invalid")], cores=2)
    assert (cost.source, cost.trials_done) == ("default rates", 0)


def test_memory_and_disk_follow_the_largest_cluster() -> None:
    asked, plan = planned()
    cost = estimate(plan, asked, cores=2)
    assert cost.memory_mb == 3 * 512 + 512
    assert cost.disk_bytes > 5000 * 1000 * 3


def messages(rest: str, machine: Machine = LARGE) -> str:
    asked, plan = planned(rest)
    return "\n".join(error.message for error in refused_on(machine, asked, plan))


def test_a_plan_that_works_is_not_refused() -> None:
    assert messages(FACTORS) == ""


def test_what_cannot_work_is_refused() -> None:
    assert "system.replication_factor = 2 with 1 node: more copies than nodes" in messages(
        "[factors]\nnodes = [1, 3]\nsystem.replication_factor = [1, 2]\n"
    )
    assert "replication factor 1: no operation could succeed" in messages('read_consistency = "TWO"\n')
    assert "cannot lend 12 nodes: only 9 addresses" in messages("[factors]\nnodes = [1, 12]\n")
    small = LARGE.model_copy(update={"memory_mb": 2000})
    assert "3 nodes need 2,048 MiB of memory" in messages(FACTORS, small)
    assert "1 node need" not in messages(FACTORS, small)
    assert "MiB of disk are needed" in messages(FACTORS, LARGE.model_copy(update={"disk_free_bytes": 10**6}))
    assert "hours are needed" in messages("[design]\ntime_budget_h = 0.001\n" + FACTORS)


def test_the_smallest_difference_is_cohens() -> None:
    """Cohen 1988, table 2.4.1 (two-tailed 0.05, power 0.80): two samples of 17 for d = 1.0, 26 for 0.8, 64 for 0.5."""
    assert detectable_effect(1) is None
    assert detectable_effect(2, alpha=0.0005) is None, "beyond every effect that is looked for"
    for n, effect in ((17, 1.0), (26, 0.8), (64, 0.5)):
        found = detectable_effect(n, degrees=2 * n - 2)
        assert found is not None
        assert found * math.sqrt(2) == pytest.approx(effect, abs=0.012)


def test_the_smallest_difference_is_that_of_statsmodels() -> None:
    for n in (2, 3, 10, 40):
        two = TTestIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8)
        assert (detectable_effect(n, degrees=2 * n - 2) or 0) * math.sqrt(2) == pytest.approx(two, rel=1e-4)
        paired = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)
        assert detectable_effect(n) == pytest.approx(paired, rel=1e-4)


def test_the_promise_is_kept_by_the_tests_that_the_report_makes() -> None:
    """Split plots with 3% between starts and 5% between trials: four starts of three trials find what was promised in
    80% of the studies, where the factor is compared over starts and where it is compared within them."""
    rng = np.random.default_rng(7)
    starts, trials, studies, between, within = 4, 3, 4000, 0.03, 0.05
    of_means = math.sqrt(between**2 + within**2 / trials)
    over_starts = (detectable_effect(starts) or 0) * of_means * math.sqrt(2)
    blocks = rng.normal(0, 0.1, (studies, 1, starts))
    apart = blocks + rng.normal(0, of_means, (studies, 2, starts)) + np.array([0, over_starts])[None, :, None]
    power = np.mean(stats.ttest_rel(apart[:, 0], apart[:, 1], axis=1).pvalue < 0.05)
    assert power == pytest.approx(0.8, abs=0.03)
    inside = (detectable_effect(starts) or 0) * within * math.sqrt(2 / trials)
    shared = rng.normal(0, between, (studies, 1, starts, 1)) + rng.normal(0, within, (studies, 2, starts, trials))
    means = shared.mean(axis=3) + np.array([0, inside])[None, :, None]
    power = np.mean(stats.ttest_rel(means[:, 0], means[:, 1], axis=1).pvalue < 0.05)
    assert power == pytest.approx(0.8, abs=0.03)


def test_resolution_rests_on_starts_for_all_factors_and_gains_by_trials_within_them() -> None:
    asked, plan = planned()
    hard, easy = resolution(asked, plan)
    assert (hard.factor, hard.n, hard.cv, hard.cv_source) == ("nodes", 2, 0.05, "assumed")
    assert (easy.factor, easy.n) == ("load.threads", 2)
    assert hard.difference is not None
    assert easy.difference is not None
    more = resolution(*planned("[design]\ntrials = 12\n" + FACTORS))[1].difference
    assert more is not None
    assert math.log1p(more) == pytest.approx(math.log1p(easy.difference) / 2), "four times the trials, half the log"
    one, single = planned("[design]\nstarts = 1\n" + FACTORS)
    assert [found.difference for found in resolution(one, single)] == [None, None]


@pytest.mark.parametrize(
    ("analysis", "alpha"),
    [("confidence = 0.99", 0.01), ('looks = "several"', 0.025), ('confidence = 0.99\nlooks = "several"', 0.005)],
)
def test_resolution_is_at_the_confidence_of_the_first_look(analysis: str, alpha: float) -> None:
    """A plan of one look at 95% is the base; the rest is the ratio of detectable effects."""
    design = "[design]\nstarts = 4\n"
    (base, _), (found, _) = (
        resolution(*planned(more + FACTORS)) for more in (design, f"{design}[analysis]\n{analysis}\n")
    )
    assert base.difference is not None
    ratio = (detectable_effect(4, alpha) or 0) / (detectable_effect(4) or 1)
    assert ratio > 1.1
    assert found.difference is not None
    assert math.log1p(found.difference) == pytest.approx(math.log1p(base.difference) * ratio)


def test_a_rise_is_not_its_logarithm_and_the_place_takes_a_degree_of_freedom() -> None:
    """Pairs of starts that vary by 5%: 12.6% with five blocks, with six the t of four degrees of freedom."""
    margin = "[analysis]\nequivalence_margin_percent = 3\n"
    five, six = (resolution(*planned(f"[design]\nstarts = {n}\n{margin}" + FACTORS))[0] for n in (5, 6))
    spread = math.sqrt(2 * math.log1p(0.05**2))
    assert five.difference == pytest.approx(math.expm1((detectable_effect(5) or 0) * spread))
    assert five.difference == pytest.approx(0.126, abs=5e-4)
    assert six.difference == pytest.approx(math.expm1((detectable_effect(6, degrees=4) or 0) * spread))
    assert six.equal_passes is not None
    assert six.equal_passes < 0.05, "hardly ever shown equivalent within 3%"


def test_a_fraction_resolves_more_of_each_factor_than_a_pair_of_treatments() -> None:
    factors = '[factors]\nnodes = [1, 2]\n"load.threads" = [1, 2]\n"load.routing" = ["token", "round-robin"]\n'
    asked, plan = planned('[design]\nkind = "fractional"\nresolution = 3\n' + factors)
    assert [(found.factor, found.n) for found in resolution(asked, plan)] == [
        ("nodes", 2), ("load.threads", 4), ("load.routing", 4)
    ]  # fmt: skip
    whole = resolution(*planned(factors))
    assert (resolution(asked, plan)[1].difference or 1) < (whole[1].difference or 0)


def test_resolution_takes_its_spread_from_the_noise_floor_else() -> None:
    asked, plan = planned()
    spread = Spread(
        response=asked.analysis.response, starts=8, trials=16, between_mean_square=0.0013, between_degrees=7,
        within_mean_square=0.0009, within_degrees=8, trials_a_start=2.0,
    )  # fmt: skip
    holds = Circumstances(
        machines=(), site="", system="", engine="", loop="closed", nodes=1, warmed_up=False, settings={}
    )
    floor = KeptFloor(study="noise-floor", made_s=0, pairs=4, holds_for=holds, spreads=(spread,))
    hard, easy = resolution(asked, plan, (), floor)
    assert easy.cv == pytest.approx(0.03)
    assert hard.cv == pytest.approx(math.sqrt(0.0002 + 0.0009 / 3))
    assert hard.cv_source == "noise floor of this machine, 4 pairs of starts"


def test_resolution_takes_its_spread_from_the_history() -> None:
    asked, plan = planned()
    history = [record(trial, 10.0 + (1.0 if trial.replicate == 1 else 0.0)) for trial in plan.trials]
    hard, easy = resolution(asked, plan, history)
    assert hard.cv == 0
    assert easy.cv == pytest.approx(0.0558, abs=0.001)
    assert easy.cv_source == "24 trials of this store"


def test_the_history_s_spread_is_of_the_trials_that_the_analysis_uses() -> None:
    asked, plan = planned("[analysis]\nwarm_up_trials = 1\n" + FACTORS)
    history = [
        record(trial, 40.0 if trial.replicate == 1 else 10.0 + trial.replicate % 2).model_copy(
            update={"order_in_start": trial.replicate}
        )
        for trial in plan.trials
    ]
    _, easy = resolution(asked, plan, history)
    assert (easy.cv, easy.cv_source) == (pytest.approx(math.sqrt(0.5) / 10.5, abs=1e-6), "16 trials of this store")
    few = Responses(operations=999, response_ms_p99=5.0)
    without = [one.model_copy(update={"responses": few}) for one in history]
    assert within_starts_cv(without, "response_ms_p99") == (0.05, "assumed"), "too few operations for a p99"
