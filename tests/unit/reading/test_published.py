"""Where treatments stand among published numbers: platform, memory and link of their cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.reading import read
from steelyard.reading.published import _place_of, facets
from steelyard.reference.tables import tables
from tests.unit.report import synthetic

FORM = tables()["regression"].form
PROFILES = FORM.profiles if FORM is not None else {}
"""Taken from the table that has the cells."""
PLACED = {"platform": "raspberry-pi-2", "ram_gb": "1", "link": "ethernet"}


@pytest.mark.parametrize(
    ("link", "published"),
    [
        ("802.11n", "802.11"),
        ("802.11b", "802.11"),
        ("ethernet-100", "ethernet"),
        ("nodal", "nodal"),
        ("lab.toml", "lab.toml"),
    ],
)
def test_a_link_is_that_of_the_cell(link: str, published: str) -> None:
    assert _place_of({"link.name": link}, PLACED, PROFILES) == {"beside.link": published}


def test_a_limit_of_memory_means_a_virtual_machine_on_its_host_s_network() -> None:
    assert _place_of({}, PLACED, PROFILES) == {}
    assert _place_of({"node.memory_mb": "2048"}, PLACED, PROFILES) == {
        "beside.platform": "virtual-machine",
        "beside.ram_gb": "2",
        "beside.link": "nodal",
    }
    board = {"node.memory_mb": "1024", "node.profile": "raspberry-pi-2", "link.name": "802.11n"}
    assert _place_of(board, PLACED, PROFILES) == {
        "beside.platform": "raspberry-pi-2",
        "beside.link": "802.11",
    }


def test_a_profile_has_its_memory_whatever_the_limit_on_a_small_scale() -> None:
    small = {"node.memory_mb": "512", "node.profile": "vm-1gb", "link.name": "nodal"}
    assert _place_of(small, PLACED, PROFILES) == {
        "beside.platform": "virtual-machine",
        "beside.ram_gb": "1",
        "beside.link": "nodal",
    }


def test_whether_nodes_are_in_containers_is_a_fact_of_theirs(tmp_path: Path) -> None:
    stores = {
        "no": synthetic.stored(tmp_path / "plain"),
        "yes": synthetic.stored(tmp_path, container_engine="Docker 27"),
    }
    for contained, folder in stores.items():
        ours = read(folder)
        assert facets(ours, ours.records[:1])["container"] == contained
