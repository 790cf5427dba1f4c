"""Responses that a study names: misspelt ones, those that no probe reads, and objectives, each with file and line."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.responses import main_names
from steelyard.study.read import read_text
from tests.unit.report import elastic, growing
from tests.unit.small_study import SMALL_STUDY

LINE = len(SMALL_STUDY.splitlines()) + 2


def asked(line: str, more: str = "") -> str:
    return f"{SMALL_STUDY}[analysis]\n{line}\n{more}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('response = "cpu_percent_men"', "did you mean 'cpu_percent_mean'"),
        ('response = "cpu"', "allowed: execution_time_ms, throughput_per_s"),
        (
            'responses = ["throughput_per_s", "operations"]',
            r"analysis.responses.1 = 'operations': not allowed; did you mean 'lost_operations'",
        ),
        ('responses = ["disk_written"]', "did you mean 'disk_written_"),
        ('responses = ["execution_time_ms"]', "is already the main response"),
        ('responses = ["response_ms_p99", "response_ms_p99"]', "is given twice"),
        ('response = "energy_j_per_operation"', "the probe 'energy', which the study does not run: probes has os"),
        ('objective = "power_watts_mean < 10"', "the probe 'energy', which the study does not run"),
        ('response = "cost_per_million_operations"', "declare cost.price_per_node_hour"),
        ('response = "modelled_energy_j_total"', "declare cost.node_watts_idle and cost.node_watts_busy"),
        ('response = "idle_power_watts"', "the probe 'energy', which the study does not run"),
        ('response = "scale_out_s"', "needs a cluster that may change its size: choose policy.name"),
        ('objective = "theta_under_percent < 5"', "needs a cluster that may change its size"),
        ('objective = "response_ms_p99"', "is not a limit: NAME <= NUMBER"),
        ('objective = "response_ms_p99 < soon"', "is not a limit: NAME <= NUMBER"),
        ('objective = "respons_ms_p99 < 5"', "unknown response 'respons_ms_p99'; did you mean 'response_ms_p99'"),
    ],
)
def test_a_response_that_no_trial_can_have_is_refused(line: str, message: str) -> None:
    with pytest.raises(StudyError, match=message) as raised:
        read_text(asked(line), "some.toml")
    assert raised.value.message.startswith(f"some.toml:{LINE}: ")


def test_what_probes_and_prices_give_may_be_named() -> None:
    more = '[cost]\nprice_per_node_hour = 0.5\ncurrency = "EUR"\n'
    line = 'response = "cost_per_million_operations"\nresponses = ["cpu_percent_mean", "response_ms_p95"]'
    analysis = read_text(asked(line, more)).analysis
    assert analysis.every_response == ("cost_per_million_operations", "cpu_percent_mean", "response_ms_p95")
    with_energy = 'probes = ["os", "energy"]\n' + asked('objective = "energy_j_per_operation < 0.5"')
    known = read_text(with_energy).analysis
    assert known.limit is not None
    assert (known.limit.response, known.limit.value) == ("energy_j_per_operation", 0.5)
    assert known.needed == ("execution_time_ms", "energy_j_per_operation")


def test_energy_above_idle_needs_an_idle_time_or_a_declared_power() -> None:
    metered = 'probes = ["os", "energy"]\n'
    line = 'response = "energy_j_above_idle"'
    with pytest.raises(StudyError, match=r"set measure_idle_s, or declare cost\.node_watts_idle"):
        read_text(metered + asked(line), "some.toml")
    with pytest.raises(StudyError, match="needs an idle time before each trial: set measure_idle_s"):
        read_text(metered + asked('response = "idle_power_watts"'), "some.toml")
    declared = "[cost]\nnode_watts_idle = 4\nnode_watts_busy = 9\n"
    for text in (metered + asked(line, declared), "measure_idle_s = 20\n" + metered + asked(line)):
        assert read_text(text).analysis.response == "energy_j_above_idle"
    while_jobs = 'response = "job_energy_j_above_idle_per_operation"'
    with pytest.raises(StudyError, match=r"needs the power of an idle node: set measure_idle_s$"):
        read_text(metered + asked(while_jobs, declared), "some.toml")
    # Whatever probe reads power, its readings count.
    plug = '[[probe.meter.meters]]\nkind = "shelly"\naddress = "10.0.0.9"\n'
    assert read_text('probes = ["os", "meter"]\nmeasure_idle_s = 9\n' + asked(line, plug)).measure_idle_s == 9


def test_measures_of_elasticity_need_a_demand_and_all_of_scaling_a_policy() -> None:
    named = '[analysis]\nresponse = "lost_operations"\nresponses = ["theta_under_percent"]\n'
    analysis = read_text(elastic.STUDY + named).analysis
    assert analysis.every_response == ("lost_operations", "theta_under_percent")
    with pytest.raises(StudyError, match="that each size carries: declare"):
        read_text(growing.STUDY + named)


def test_a_stopping_rule_cannot_wait_for_a_price() -> None:
    assert "cpu_percent_mean" in main_names()
    more = '[cost]\nprice_per_node_hour = 0.5\ncurrency = "EUR"\n[design.until]\nwidth_percent = 5\n'
    text = asked('response = "cost_per_million_operations"', more).replace("starts = 2", "starts = 20")
    with pytest.raises(StudyError, match="no stopping rule can wait for it"):
        read_text(text)
