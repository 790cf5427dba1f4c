"""Which sites go together: databases on one, load nodes on another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan import Machine, requirements
from steelyard.plan.abilities import Abilities, requests_of
from steelyard.plugins.find import Plugins
from steelyard.plugins.parts import Parts
from steelyard.site.base import Refusal, Request, patience_of, unreached
from tests.conftest import Rights
from tests.unit.lab.fakes import plan_of, study
from tests.unit.small_study import refused_on

MACHINE = Machine(cores=2, memory_mb=64_000, disk_free_bytes=10**12)
INVENTORY = "".join(f'[[machine]]\nname = "pi{number}"\naddress = "10.0.0.{number}"\n' for number in (1, 2, 3))
LOCAL = {"name": "local"}
LOOPBACK = {"name": "local", "mode": "loopback"}
NAMESPACES = {"name": "local", "mode": "namespaces"}


@pytest.fixture
def ssh(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "shelf.toml").write_text(INVENTORY)
    return {"name": "ssh", "inventory": str(tmp_path / "shelf.toml")}


def refused(site: dict[str, Any], load_site: dict[str, Any], **changes: Any) -> Sequence[StudyError]:
    chosen = study(site=site, load_site=load_site, **changes)
    return refused_on(MACHINE, chosen, plan_of(chosen))


def test_a_shelf_is_loaded_from_this_machine(ssh: dict[str, Any], rights: Rights) -> None:
    rights.capable = True
    assert refused(ssh, LOCAL) == ()
    settings = TrialSettings({"site": {**ssh, "nodes": 3, "load_nodes": 1}, "load_site": LOCAL})
    shelf, here = Parts(Plugins(), state_folder=Path("/no/state")).sites(settings)
    assert (shelf.name, here.name) == ("ssh", "local")
    assert "network" in here.shares, "its nodes have the machine's network, also for root"


def test_all_machines_of_the_shelf_can_be_databases(ssh: dict[str, Any]) -> None:
    (error,) = refused(ssh, ssh, factors={"nodes": [1, 4]})
    assert error.message.startswith("site ssh cannot lend 4 nodes: 4 database nodes and 0 load nodes were requested")
    (error,) = refused(ssh, {**ssh, "nodes": 4}, load={"operations": 10, "threads": 8})
    assert error.message.startswith("site ssh cannot lend 4 load nodes: ")
    assert error.key == "load_site.nodes"


def test_a_machine_that_both_inventories_give_is_refused_before_any_lease(ssh: dict[str, Any], tmp_path: Path) -> None:
    (error,) = refused(ssh, ssh, factors={"nodes": [1, 3]})
    assert error.key == "load_site.nodes"
    assert error.message.startswith("site ssh cannot lend 1 load node: the databases already use pi3; one machine")
    assert refused(ssh, ssh, factors={"nodes": [1, 2]}) == ()
    (tmp_path / "other.toml").write_text('[[machine]]\nname = "apple"\naddress = "10.0.0.1"\n')
    (error,) = refused(ssh, {**ssh, "inventory": str(tmp_path / "other.toml")}, factors={"nodes": [1]})
    assert "the databases already use pi1" in error.message


@pytest.mark.parametrize(
    ("databases", "load", "words"),
    [
        (LOOPBACK, "ssh", "databases of site local have addresses that only this machine reaches, not site ssh"),
        (NAMESPACES, LOOPBACK, "databases of site local have their own network, which site local cannot reach"),
        (
            "ssh",
            NAMESPACES,
            "load nodes of site local have a separate network without access to ssh",
        ),
    ],
    ids=["here from elsewhere", "namespaces from here", "elsewhere from namespaces"],
)
def test_combinations_that_cannot_work_are_refused(
    ssh: dict[str, Any], databases: Any, load: Any, words: str, rights: Rights
) -> None:
    rights.capable = True
    (error,) = refused(ssh if databases == "ssh" else databases, ssh if load == "ssh" else load)
    assert words in error.message
    assert error.key == "load_site.nodes"


@pytest.mark.parametrize(
    ("section", "key", "field"),
    [
        ("site", "site.load_nodes", "site.load_nodes"),
        ("load_site", "site.load_nodes", "load_site.nodes"),
        ("load_site", "site.image", "load_site.image"),
        ("load_site", "node.cpus", "node.cpus"),
    ],
)
def test_a_refusal_points_to_a_key_that_the_section_has(section: str, key: str, field: str) -> None:
    assert requirements.key_of(Refusal("no", key), section) == field


def test_containers_on_a_bridge_are_reached_from_this_machine() -> None:
    sections = {"site": {"name": "docker", "network": "bridge", "nodes": 3, "load_nodes": 1}, "load_site": LOOPBACK}
    containers, here = Parts(Plugins(), state_folder=Path("/no/state")).sites(TrialSettings(sections))
    assert unreached(containers, here) is None


def test_requests_and_times_are_of_both_sites(ssh: dict[str, Any]) -> None:
    chosen = study(site=ssh, load_site={**LOOPBACK, "nodes": 2}, node={"memory_mb": 512})
    trial = plan_of(chosen).trials[0]
    abilities = Abilities(Plugins())
    first, second = requests_of("s", trial.settings, abilities.system(trial.settings))
    assert (first.database_nodes, first.load_nodes, first.limits.memory_mb) == (trial.settings.site.nodes, 0, 512)
    assert second == Request("s", 0, 2)
    sites = abilities.sites(trial.settings)
    assert abilities.lease_times(trial.settings).lease_s == pytest.approx(6.1)
    assert patience_of(*sites).lease_s == pytest.approx(960.0)
    assert patience_of(*sites).inspect_s == pytest.approx(300.0)


def test_the_number_of_load_nodes_is_named_where_it_is_written() -> None:
    load = {"operations": 10, "threads": 1}
    (error,) = refused(LOOPBACK, {**LOOPBACK, "nodes": 2}, load=load, factors={"nodes": [1]})
    assert "load.threads is 1, but each of the 2 load nodes" in error.message
    assert error.hint == "set load.threads to 2 or more, or load_site.nodes to 1 or fewer"
