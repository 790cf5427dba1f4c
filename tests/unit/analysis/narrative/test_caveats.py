"""What the data warn of is said, and nothing is said where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.narrative import machines
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import anova, course, shape, summary, variance
from steelyard.analysis.statistics.steady import Steady, not_settled
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis.made import cell, drawn, study


def planted(records):
    """The trials as a system with a planted law gives them."""
    settings = TrialSettings({"system": {"name": "simulated", "contention": 0.1}})
    return [one.model_copy(update={"settings": settings}) for one in records]


def sentences(results: Results) -> list[str]:
    """What the trials themselves warn of, most important first."""
    pointed = (anova, course, shape, summary, variance)
    return [
        one
        for module in pointed
        for one in module.STATISTIC.sentences(results.of(module.STATISTIC.row), results.response)
    ]


def told(records) -> str:
    return " ".join(sentences(analyse(records, study(), seed=1)))


def test_outliers_are_counted_and_kept():
    rng = np.random.default_rng(1)
    values = [[float(v) for v in rng.normal(100, 1, 12)] for _ in range(2)]
    values[0][5] = 300.0
    found = analyse(cell(values), study(), seed=1)
    assert any(
        "1 outlier among the trials of workload A, 1 node (more than 1.5 interquartile" in one for one in found.caveats
    )
    assert found.main(summary.Summary)[0].n == 24


@pytest.mark.parametrize(
    ("starts", "words"),
    [(1, "Trials of workload A, 1 node are not normally"), (12, "Start means of workload A, 1 node are")],
)
def test_normality_is_tested_of_independent_values(starts, words):
    values = np.random.default_rng(1).normal(100, 1, 12)
    values[5] = 300.0
    found = analyse(cell([[float(v) for v in part] for part in np.split(values, starts)]), study(), seed=1)
    assert any(one.startswith(words) and "normally distributed" in one for one in found.caveats)


def test_trials_of_two_starts_are_not_tested_for_normality():
    values = [[100.0 + trial / 100 for trial in range(12)], [200.0 + trial / 100 for trial in range(12)]]
    found = analyse(cell(values), study(), seed=1)
    assert not any("normally distributed" in one for one in found.caveats)


def test_operations_that_failed_are_said_beside_the_verdict():
    """1 node is slower, but 3 nodes lose 0.4% of their operations, which is below the limit of 1%."""
    records = cell([[100.0], [101.0], [99.0]])
    fast = [
        one.model_copy(update={"responses": one.responses.model_copy(update={"operations": 996, "errors": 4})})
        for one in cell([[50.0], [51.0], [49.0]], nodes=3)
    ]
    found = analyse(records + fast, study(), seed=1)
    assert (
        "0.40% of operations failed at workload A, 3 nodes, where most did: times and rates are of those that were "
        "answered. Compare error_percent, too."
    ) in found.caveats
    assert not any("failed" in one for one in analyse(records, study(), seed=1).caveats)


def test_two_modes_are_said():
    rng = np.random.default_rng(2)
    values = [[float(v) for v in rng.normal(100 + 40 * (start % 2), 1, 8)] for start in range(4)]
    said = told(cell(values))
    assert "workload A, 1 node has trials of more than one mode" in said
    assert "more starts help, more trials hardly do" in said


def test_start_means_that_vary_too_much_for_their_intervals_are_said():
    assert "Start means" not in told(cell([[100.0, 101.0], [130.0, 131.0], [90.0, 91.0]]))
    said = told(cell([[100.0, 101.0], [300.0, 310.0], [90.0, 91.0]]))
    assert "Start means of workload A, 1 node vary by more than 30%" in said


def test_a_level_study_of_normal_trials_warns_of_nothing_but_says_where_the_spread_is():
    records = drawn(np.random.default_rng(3), {1: 4000.0, 3: 6000.0}, starts=4, trials=4, start_cv=0.02, trial_cv=0.02)
    *others, said = sentences(analyse(records, study(), seed=1))
    assert not any("mode" in one or "level" in one or "depends" in one for one in others)
    assert said.startswith("Standard deviation of execution time: ")
    assert "between the trials of a start" in said


def test_a_change_of_all_treatments_is_said_with_its_hour_and_size():
    records = drawn(np.random.default_rng(6), {1: 4000.0, 3: 6000.0}, starts=10, trials=3, start_cv=0.02, trial_cv=0.01)
    slow = [
        one.model_copy(
            update={
                "responses": one.responses.model_copy(
                    update={"execution_time_ms": (one.responses.execution_time_ms or 0) * (1.2 if one.block > 5 else 1)}
                )
            }
        )
        for one in records
    ]
    said = told(slow)
    assert "Over all treatments together the level changed after start 10 of 20 1.4 h into the study: +" in said


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["steady", "steady"], []),
        ([], []),
        (
            ["steady", "drifting", "warm-up", "none"],
            ["Within 3 trials, by the seconds: 1 still moved at their end; 1 began at another level."],
        ),
        (["steady"] * 47 + ["drifting"], []),
        (["none"] * 48, ["All 48 trials are too short to test for a steady state within them."]),
    ],
)
def test_seconds_are_summed_up(verdicts, said):
    states = [
        Steady(
            trial_id=str(place), attempt=1, treatment={}, response="response_ms_mean", unit="ms", n=60,
            verdict=verdict, detail="",
        )
        for place, verdict in enumerate(verdicts)
    ]  # fmt: skip
    assert not_settled(states) == said


@pytest.mark.parametrize(
    ("system", "order", "sizes", "cold"),
    [
        ({"name": "simulated"}, "blocks", (1, 3), None),
        ({"name": "simulated"}, "published", (3,), None),
        ({"name": "simulated", "warm_up": "3:2000"}, "blocks", (1, 3), "trials: the nodes of a larger cluster"),
        ({"name": "cassandra"}, "blocks", (1, 3), "trials: the nodes of a larger cluster"),
        ({"name": "cassandra"}, "blocks", (3,), "trials: they may have become faster from trial to trial"),
        ({"name": "cassandra"}, "published", (1, 3), "trials, as published: the nodes of a larger cluster"),
        ({"name": "cassandra"}, "published", (3,), "trials, as published: they may have become"),
    ],
)
def test_servers_are_called_cold_only_where_they_can_be(system, order, sizes, cold):
    records = [one for nodes in sizes for one in cell([[100.0, 101.0], [102.0, 103.0]], nodes=nodes)]
    asked = study(
        system=system, design={"order": order}, server_warm_up={"mode": "off"},
        factors={"nodes": sizes, "workload": ("A",)},
    )  # fmt: skip
    records = planted(records) if system["name"] == "simulated" else records
    said = [one for one in analyse(records, asked, seed=1).caveats if "not warmed up" in one]
    assert len(said) == (cold is not None)
    assert all(cold in one for one in said)


def test_a_simulated_cluster_is_said_to_be_one():
    of_simulated = "The cluster is simulated: this says what the laboratory finds, nothing about any database."
    assert analyse(planted(cell([[1.0]])), study(), seed=1).caveats[0] == of_simulated
    assert of_simulated not in analyse(cell([[1.0]]), study(), seed=1).caveats
    mixed = [*planted(cell([[1.0]])), *cell([[2.0]], nodes=3)]
    assert of_simulated not in analyse(mixed, study(), seed=1).caveats


def test_planted_times_do_not_follow_limits_of_nodes():
    of_planted = "Its times are planted: they do not follow the limits of nodes."
    limited = study(node={"cpus": 0.5})
    assert of_planted in analyse(planted(cell([[1.0]])), limited, seed=1).caveats
    assert of_planted not in analyse(planted(cell([[1.0]])), study(), seed=1).caveats


def test_emulated_processors_are_said():
    emulated = analyse(cell([[1.0]]), study(), seed=1, emulated=True).caveats
    assert [one for one in emulated if one.startswith("The processors of virtual machines were emulated")]
    assert not [one for one in analyse(cell([[1.0]]), study(), seed=1).caveats if "emulated" in one]


@pytest.mark.parametrize(
    ("nodes", "read_from", "said"), [(3, "any", True), (1, "any", False), (3, "primary", False), (2, "replicas", True)]
)
def test_reads_of_replicas_are_a_limit(nodes, read_from, said):
    settings = TrialSettings(
        {"site": {"name": "local", "nodes": nodes}, "load": {"operations": 1, "read_from": read_from}}
    )
    records = [one.model_copy(update={"settings": settings}) for one in cell([[1.0]])]
    limits = [one for one in analyse(records, study(), seed=1).caveats if one.startswith("Reads go to replicas, too")]
    assert len(limits) == said
    assert all(f"client.read_from = {read_from}" in one for one in limits)


def test_cold_servers_are_the_first_limit():
    cold = study(system={"name": "cassandra"}, server_warm_up={"mode": "off"})
    first = analyse(cell([[100.0, 101.0], [102.0, 103.0]]), cold, seed=1).caveats[0]
    assert first.startswith("The servers were not warmed up before the trials: ")


def test_a_second_trial_that_is_faster_in_every_start_is_said():
    words = (
        "In every start of workload A, 1 node the second trial (where there was one) was faster than the first, "
        "by a factor of 1.8 to 2"
    )
    caveats = analyse(cell([[200.0, 100.0], [180.0, 100.0]]), study(), seed=1).caveats
    assert any(one.startswith(words) for one in caveats)
    for level in ([[200.0, 100.0], [100.0, 100.0]], [[200.0, 100.0]], [[100.0, 200.0], [100.0, 200.0]]):
        assert not any("second trial was faster" in one for one in analyse(cell(level), study(), seed=1).caveats)


def test_the_duration_of_a_load_is_called_no_result():
    timed = study(load={"duration_s": 4})
    caveat = analyse(cell([[4000.0, 4001.0], [4000.0, 4002.0]]), timed, seed=1).caveats[0]
    assert caveat.startswith("Each trial lasts as long as load.duration_s says")
    assert 'analysis.response = "throughput_per_s" is one.' in caveat
    assert not any("lasts as long as" in one for one in analyse(cell([[1.0]]), study(), seed=1).caveats)


def test_two_starts_are_said_to_give_no_interval():
    results = analyse(cell([[100.0, 101.0], [102.0, 103.0]]), study(), seed=1)
    assert any(one.startswith("Two starts of a level give no interval: it needs 3") for one in results.caveats)
    assert "There is no interval: it needs 3 starts of each level, however many trials there are." in results.answer


def test_hardware_that_nodes_stand_in_for_is_named() -> None:
    made = study(node={"profile": "raspberry-pi-2"}, link={"name": "802.11g"})
    (words,) = [text for text in analyse(cell([[1.0, 2.0]]), made, seed=1).caveats if "No such hardware" in text]
    assert "nodes were limited like raspberry-pi-2 and links were made like 802.11g" in words
    plain = analyse(cell([[1.0, 2.0]]), study(node={"profile": "unlimited"}), seed=1).caveats
    assert not any("No such hardware" in text for text in plain)


def test_a_machine_that_measured_one_block_only_is_named():
    blocks = {"lab-a": (1, 3), "lab-b": (2,)}
    of = [
        one.model_copy(update={"block": block, "machine_id": machine})
        for machine, numbers in blocks.items()
        for block in numbers
        for one in cell([[1.0, 2.0]])
    ]
    (said,) = machines.limits(of)
    assert "on 2 machines: lab-a (blocks 1 and 3) and lab-b (block 2)" in said
    assert said.endswith("Only one block was measured on lab-b: it cannot be separated from its machine.")
    assert machines.limits([one for one in of if one.machine_id == "lab-a"]) == []
    both = [*of, *(one.model_copy(update={"block": 4}) for one in of if one.machine_id == "lab-b")]
    assert "Only one block" not in machines.limits(both)[0]
