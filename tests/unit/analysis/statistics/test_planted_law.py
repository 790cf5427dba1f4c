"""A planted contention: stated beside the one that was found, and held by its interval as often as promised."""

from __future__ import annotations

import numpy as np
from tools.coverage.models import _stated

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.law_choice import LawChoice, planted_contention
from steelyard.judging.verdict import CEILING_UNKNOWN, NO_CALIBRATION
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from tests.unit.analysis.made import cell, study

SIZES = (1, 2, 3, 4, 6, 8)


def measured(contention: float, threads: int, system: str = "simulated") -> Results:
    """Six sizes of three starts that follow Amdahl's law but for 1%; the study's file does not name its contention."""
    noise = np.random.default_rng(4).normal(0, 0.01, (len(SIZES), 3))
    records = [
        one
        for size, errors in zip(SIZES, noise, strict=True)
        for one in cell([[1000 * (1 + contention * (size - 1)) / size * float(np.exp(e))] for e in errors], nodes=size)
    ]
    law = {"contention": 0.1} if system == "simulated" else {}
    settings = TrialSettings.model_validate({"system": {"name": system, **law}})
    records = [one.model_copy(update={"settings": settings}) for one in records]
    asked = study(
        system={"name": system}, load={"operations": 1000, "threads": threads},
        factors={"nodes": SIZES, "workload": ("A",)}, analysis={"response": "throughput_per_s"},
    )  # fmt: skip
    return analyse(records, asked, seed=1)


def test_the_answer_states_the_planted_contention_beside_the_found_one() -> None:
    results = measured(0.1, 256)
    (choice,) = results.of(LawChoice)
    assert choice.contention is not None
    assert choice.contention.low is not None
    assert choice.contention.high is not None
    assert choice.contention.low <= 0.1 <= choice.contention.high
    assert choice.planted_contention == 0.1
    assert any("; contention 0." in one and one.endswith("], planted 0.1.") for one in results.answer)
    assert not any("did not saturate" in one for one in results.caveats)


def test_a_contention_that_varies_is_not_called_planted() -> None:
    records = [
        one.model_copy(update={"settings": TrialSettings.model_validate({"system": {"name": "simulated", **more}})})
        for one, more in zip(cell([[1.0], [2.0]]), ({"contention": 0.1}, {"contention": 0.2}), strict=True)
    ]
    assert planted_contention(records) is None
    assert planted_contention(records[:1]) == 0.1
    assert planted_contention([]) is None


def test_other_systems_have_no_planted_contention() -> None:
    (choice,) = measured(0.1, 256, "cassandra").of(LawChoice)
    assert choice.planted_contention is None
    assert "planted" not in choice.sentence


def test_a_load_that_does_not_saturate_the_cluster_is_said_to() -> None:
    results = measured(0.144, 32)
    assert {round(fit.busy_at_most or 0, 3) for fit in results.of(LawFit)} == {round(32 / 39, 3)}
    (note,) = [one for one in results.caveats if "did not saturate" in one]
    assert "32 threads keep 8 nodes busy for at most 82% of the time" in note
    assert "133 threads or more would do" in note


PLATEAU = (1, 2, 3, 4, 5, 6, 7, 8)


def capped(us: float, notes: tuple[str, ...] = (), late: int = 0) -> str:
    """The sentence of a study whose throughput stays at 4,200/s; `us`: the load generator's CPU time an operation;
    `late`: attempts with 8 nodes that it limited."""
    noise = np.random.default_rng(4).normal(0, 0.01, (len(PLATEAU), 3))
    records = [
        one
        for size, errors in zip(PLATEAU, noise, strict=True)
        for one in cell([[1e6 / min(1000 * size, 4200) * float(np.exp(e))] for e in errors], nodes=size)
    ]
    cost = {"generator_cpu_us_per_operation": us}
    records = [
        one.model_copy(
            update={
                "responses": one.responses.model_copy(update=cost),
                "verdict": one.verdict.model_copy(update={"notes": notes}),
                "settings": TrialSettings.model_validate({"site": {"name": "local"}}),
            }
        )
        for one in records
    ]
    bound = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.GENERATOR_BOUND),))
    records += [
        one.model_copy(update={"attempt": 2, "verdict": bound}) for one in records if one.treatment["nodes"] == 8
    ][:late]
    asked = study(
        load={"operations": 1000, "threads": 256}, factors={"nodes": PLATEAU, "workload": ("A",)},
        analysis={"response": "throughput_per_s"},
    )  # fmt: skip
    (choice,) = analyse(records, asked, seed=1).of(LawChoice)
    return choice.sentence


def test_a_plateau_says_what_is_known_of_the_load_generator() -> None:
    """4,200/s at 200 µs each are 84% of a core: beyond 0.9 x 0.9, the limit of its busiest thread."""
    near = capped(200.0)
    assert "nodes [4." in near
    assert "and stays at 4,2" in near
    assert (
        "near the ceiling of the load generator, and need not be the cluster's: there it took 84% of a core, "
        "and it limited 0 of 12 attempts beyond the knee." in near
    )
    assert "limited 2 of 14 attempts beyond the knee" in capped(50.0, late=2)
    unknown = capped(50.0, notes=(f"{CEILING_UNKNOWN}: {NO_CALIBRATION}",))
    assert "it may be the ceiling of the load generator, which is unknown (`steelyard calibrate`): there" in unknown
    over_http = "not calibrated, run `steelyard calibrate --protocol http`"
    unknown = capped(50.0, notes=(f"{CEILING_UNKNOWN}: {over_http}",))
    assert "which is unknown (`steelyard calibrate --protocol http`): there" in unknown
    assert "the load generator was below its ceiling: there it took 21% of a core." in capped(50.0)
    assert "; contention" not in near


def test_the_stated_interval_holds_the_planted_contention() -> None:
    """Forty sets of data; `python -m tools.coverage --family laws` draws 400: 94.5% held it."""
    given = list(_stated()(np.random.default_rng(5), 40))
    assert sum(one is True for one in given) >= 34
