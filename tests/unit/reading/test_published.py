"""Where treatments stand among published numbers: platform, memory and link of their cells."""

from __future__ import annotations

import pytest

from steelyard.reading.published import _place_of

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
    assert _place_of({"link.name": link}, PLACED) == {"beside.link": published}


def test_a_limit_of_memory_means_a_virtual_machine_on_its_host_s_network() -> None:
    assert _place_of({}, PLACED) == {}
    assert _place_of({"node.memory_mb": "2048"}, PLACED) == {
        "beside.platform": "virtual-machine",
        "beside.ram_gb": "2",
        "beside.link": "nodal",
    }
    board = {"node.memory_mb": "1024", "node.profile": "raspberry-pi-2", "link.name": "802.11n"}
    assert _place_of(board, PLACED) == {
        "beside.platform": "raspberry-pi-2",
        "beside.link": "802.11",
    }


def test_a_profile_has_its_memory_whatever_the_limit_on_a_small_scale() -> None:
    small = {"node.memory_mb": "512", "node.profile": "vm-1gb", "link.name": "nodal"}
    assert _place_of(small, PLACED) == {
        "beside.platform": "virtual-machine",
        "beside.ram_gb": "1",
        "beside.link": "nodal",
    }
