"""Estimated times under limits: quotas of processors, rates of disks, dilation, the phase in which limits begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.trial import Phase
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.phase_times import limited_times, server_warm_up_s, slowed_from_start, start_phases
from steelyard.plugins.find import Plugins
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY

CORES = 2


NODES = 2


def settings(node: str = "", system: str = "cassandra", more: str = "") -> TrialSettings:
    text = SMALL_STUDY.replace('name = "simulated"', f'name = "{system}"')
    trials = expand(read_text(f"{text}{more}[node]\n{node}\n")).trials
    return next(trial.settings for trial in trials if trial.settings.site.nodes == NODES)


@pytest.fixture
def abilities(tmp_path: Path) -> Abilities:
    return Abilities(Plugins(), state_folder=tmp_path, cache_folder=tmp_path)


def phases(of: TrialSettings, abilities: Abilities) -> dict[Phase, float]:
    return start_phases(of, abilities, CORES, has_snapshot=True, warmed_up=True)


def test_a_quota_from_the_start_slows_the_start_and_filling(abilities: Abilities) -> None:
    free, warm = settings(), settings("cpus = 0.25")
    cold = settings('cpus = 0.25\ncpus_from = "start"')
    plain, later, slow = (phases(each, abilities) for each in (free, warm, cold))
    assert slow[Phase.DEPLOY] > 2 * later[Phase.DEPLOY] > 2 * plain[Phase.DEPLOY]
    assert slow[Phase.POPULATE] > later[Phase.POPULATE] == plain[Phase.POPULATE]
    assert Phase.LIMIT not in plain | slow
    assert later[Phase.LIMIT] > 2.0


def test_a_quota_that_gives_a_node_its_share_changes_nothing(abilities: Abilities) -> None:
    of = settings('cpus = 1\ncpus_from = "start"')
    assert limited_times(of, abilities, CORES, warm=True) == abilities.cluster_times(of, CORES)


def test_trials_carry_no_more_than_the_quotas_of_all_nodes(abilities: Abilities) -> None:
    free, half = settings(), settings("cpus = 0.5")
    dilated = settings("cpus = 0.5\ndilation = 2")
    most = [limited_times(each, abilities, CORES, warm=True).most_per_s for each in (free, half, dilated)]
    assert most == pytest.approx([most[0], most[0] / 2, most[0] / 4])
    assert limited_times(half, abilities, CORES, warm=False).most_per_s == most[0]


def test_planted_times_are_not_the_processors(abilities: Abilities) -> None:
    of = settings('cpus = 0.1\ncpus_from = "start"', "simulated")
    assert limited_times(of, abilities, CORES, warm=True) == abilities.cluster_times(of, CORES)
    assert not slowed_from_start(of, abilities)


def test_a_slow_disk_slows_filling_and_restoring(abilities: Abilities) -> None:
    slow = settings("disk_write_mb_per_s = 0.001\ndisk_read_mb_per_s = 0.001")
    times, free = limited_times(slow, abilities, CORES, warm=True), abilities.cluster_times(slow, CORES)
    assert times.fill_s == pytest.approx(2 * times.restore_s)
    assert times.restore_s == pytest.approx(times.snapshot_s)
    assert times.restore_s > free.restore_s
    assert times.start_s == free.start_s
    dilated = settings("cpus = 0.5\ndilation = 2\ndisk_write_mb_per_s = 0.001")
    assert limited_times(dilated, abilities, CORES, warm=False).fill_s == pytest.approx(2 * times.fill_s)


def test_a_disk_limited_when_warm_is_filled_without_its_rates(abilities: Abilities) -> None:
    later = settings('disk_write_mb_per_s = 0.001\ndisk_rates_from = "warm"')
    warming, warm = (limited_times(later, abilities, CORES, warm=warm) for warm in (False, True))
    assert warming == abilities.cluster_times(later, CORES)
    assert warm.restore_s > warming.restore_s


def test_the_gauge_takes_as_long_as_the_limits_in_force_make_it(abilities: Abilities) -> None:
    as_asked, dilated = (settings(f"cpus = 1\nmemory_mb = 4096\ndilation = {k}") for k in (1, 4))
    assert phases(dilated, abilities)[Phase.WIPE] > phases(as_asked, abilities)[Phase.WIPE] + 1


def test_links_take_as_long_as_their_delay_in_stretched_time(abilities: Abilities) -> None:
    link = '[link]\nname = "wan-20ms"\n'
    links = [
        start_phases(settings(f"cpus = 1\ndilation = {k}", more=link), abilities, CORES, has_snapshot=True, links=True)
        for k in (1, 4)
    ]
    assert links[1][Phase.RELEASE] > links[0][Phase.RELEASE] + 1


def test_servers_held_to_a_quota_take_the_whole_deadline_to_warm_up(abilities: Abilities) -> None:
    asked = ServerWarmUp(deadline_s=100)
    assert slowed_from_start(settings('cpus = 0.2\ncpus_from = "start"'), abilities)
    assert not slowed_from_start(settings("cpus = 0.2"), abilities)
    assert server_warm_up_s(asked, (), slowed=True) == 100 > server_warm_up_s(asked, ())
