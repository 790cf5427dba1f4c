"""Names of facts and roles of nodes: by what the system says on them, whatever the nodes are called."""

from __future__ import annotations

from steelyard.analysis.comparisons.confounders import apart
from steelyard.model.facts import (
    MACHINE,
    emulated_processor,
    isolation,
    of_machines,
    of_systems,
    role_of,
    system_facts_name,
)
from steelyard.reading.published import platform_of
from steelyard.store import layout

BOARDS = {"lima": {"cores": "4", "site": "lab", "cpu_model": "A53"}, "amber": {"cores": "8", "cpu_model": "x"}}
"""A database whose name begins as load nodes' do, and a load node whose name does not."""
FACTS = {"amber": BOARDS["amber"], "lima": BOARDS["lima"], system_facts_name("lima"): {"version": "5"}}


def test_roles_follow_from_facts_not_from_names() -> None:
    assert [role_of(name, FACTS) for name in ("lima", "amber", MACHINE)] == ["database", "load", None]
    assert of_systems(FACTS) == {"lima": {"version": "5"}}
    assert of_machines(FACTS) == BOARDS


def test_without_facts_of_systems_the_first_letter_is_the_mark() -> None:
    for facts in ((), ("n1", "l1")):
        assert [role_of(name, facts) for name in ("n1", "l1", MACHINE)] == ["database", "load", None]


def test_differences_between_sides_are_told_by_role() -> None:
    other = {**FACTS, "amber": {**BOARDS["amber"], "cores": "2"}, "lima": {**BOARDS["lima"], "cores": "16"}}
    found = {one.name: (one.a, one.b) for one in apart((), (), [FACTS], [other], ())}
    assert found == {"cores": (("4",), ("16",)), "load node: cores": (("8",), ("2",))}


def test_the_platform_is_that_of_the_database_nodes() -> None:
    assert platform_of(FACTS) == "lab on A53"
    assert platform_of({"l1": BOARDS["amber"], "n1": BOARDS["lima"]}) == "lab on A53"


def test_files_of_facts_give_their_names_back() -> None:
    for name in ("n1", MACHINE, system_facts_name("n1"), system_facts_name("db.example.org")):
        file = layout.facts_file(name)
        assert layout.facts_name(file.removesuffix(".json")) == name


def test_what_a_node_is_in_is_told_by_what_runs_it() -> None:
    assert isolation({"container_engine": "Docker 27.1"}) == "container"
    assert isolation({"vm_emulator": "QEMU 7.2", "vm_accelerator": "kvm"}) == "virtual machine"
    assert isolation({"cores": "2"}) == isolation({}) == ""


def test_a_processor_is_emulated_where_its_accelerator_is_none() -> None:
    assert emulated_processor({"vm_accelerator": "tcg"})
    assert not emulated_processor({"vm_accelerator": "kvm"})
    assert not emulated_processor({})
