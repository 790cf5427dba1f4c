"""From when on processors are limited: complete settings and ids."""

from __future__ import annotations

from steelyard.model.node_limits import NodeLimits
from steelyard.plan import expand, warnings
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY

LIMITED = f"{SMALL_STUDY}[node]\ncpus = 0.5\n"
FROM_START = f'{LIMITED}cpus_from = "start"\n'


def ids(text: str) -> list[str]:
    return [trial.id for trial in expand(read_text(text)).trials]


def test_processors_are_limited_from_warm_on_unless_the_study_says_otherwise() -> None:
    limited, start = (expand(read_text(text)).trials[0].settings for text in (LIMITED, FROM_START))
    assert limited.node == NodeLimits(cpus=0.5, cpus_from="warm")
    assert limited.node.processors_from_warm
    assert start.node == NodeLimits(cpus=0.5, cpus_from="start")
    assert not start.node.processors_from_warm
    assert ids(LIMITED) == ids(f'{LIMITED}cpus_from = "warm"\n')
    assert not set(ids(LIMITED)) & set(ids(FROM_START))


def test_both_can_be_levels_of_a_factor() -> None:
    text = SMALL_STUDY.replace("[factors]", '[factors]\n"node.cpus_from" = ["warm", "start"]') + "[node]\ncpus = 0.5\n"
    plan = expand(read_text(text))
    assert {(trial.treatment["node.cpus_from"], trial.settings.node.processors_from_warm) for trial in plan.trials} == {
        ("warm", True), ("start", False)
    }  # fmt: skip
    assert "node.cpus_from" in plan.hard


def test_processors_of_a_virtual_machine_are_no_quota() -> None:
    study = read_text(SMALL_STUDY.replace('name = "local"', 'name = "vm"') + "[node]\ncpus = 2.0\n")
    trial = expand(study).trials[0]
    assert trial.settings.node == NodeLimits(cpus=2.0, cpus_from="start")
    assert not trial.settings.node.processors_from_warm


def test_rates_of_disks_that_are_lifted_for_the_first_fill_only_are_a_note() -> None:
    limited = f'{SMALL_STUDY}[node]\ndisk_write_mb_per_s = 5.0\ndisk_rates_from = "warm"\n'
    reloaded = limited.replace("[node]", '[data]\nstate = "reload"\n[node]')
    notes = [[note for note in warnings(study, expand(study)) if "first fill of a start only" in note]
             for study in map(read_text, (limited, reloaded))]  # fmt: skip
    assert [len(of_study) for of_study in notes] == [0, 1]
