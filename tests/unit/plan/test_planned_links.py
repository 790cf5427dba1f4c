"""Links of a plan, as `check` shows them."""

from __future__ import annotations

import pytest

from steelyard.model.link import LinkChoice
from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.planned_links import links_of
from steelyard.site.kernel import links as kernel_links
from steelyard.study import read_text
from tests.unit.small_study import SMALL_STUDY


def cells(more: str) -> list[tuple[str, ...]]:
    return [link.cells for link in links_of(expand(read_text(SMALL_STUDY + more)), Abilities())]


def test_each_link_is_there_once_with_its_medium_rate_delay_and_maker() -> None:
    assert cells('link = ["802.11n", "nodal", "wan-20ms", "ethernet-100"]\n') == [
        ("nodal", "site's network", "as it is", "as it is", "kernel: bridge"),
        ("802.11n", "802.11, A-MPDU 16", "65 Mbit/s", "airtime", "steelyard-agent link"),
        ("ethernet-100", "switched", "100 Mbit/s", "as it is", "kernel: bridge, tbf"),
        ("wan-20ms", "switched", "100 Mbit/s", "10 ± 0.2 ms", "steelyard-agent link"),
    ]


def test_what_depends_on_the_kernel_says_so() -> None:
    ((_, _, _, delay, maker),) = cells('[link]\nname = "ethernet-100"\ndelay_ms = 3\n')
    assert (delay, maker) == ("3 ms", "kernel: bridge, tbf, netem; without netem, steelyard-agent link")


def test_what_is_unusual_is_said() -> None:
    ((_, medium, *_),) = cells('[link]\nname = "802.11g"\nhidden = [["n1", "n2"]]\nrts_threshold_bytes = 500\n')
    assert medium == "802.11, RTS from 500 B, 1 hidden pair"
    ((_, medium, _, delay, maker),) = cells(
        '[link]\nname = "ethernet-100"\nduplex = "half"\ndelay_ms = 3\njitter_ms = 1\nloss_percent = 0.5\n'
    )
    assert (medium, delay, maker) == ("switched, half duplex, 0.5% lost", "3 ± 1 ms", "steelyard-agent link")


def test_a_dilated_link_is_as_asked_and_says_so() -> None:
    ((_, _, rate, _, maker),) = cells('[link]\nname = "ethernet-100"\n[node]\ncpus = 1\ndilation = 2\n')
    assert (rate, maker) == ("100 Mbit/s", "kernel: bridge, tbf; dilated by 2")


@pytest.mark.parametrize("netem", [True, False])
def test_what_is_foretold_is_what_the_site_chooses(netem: bool) -> None:
    links = [
        LinkChoice(name="a", medium="switched", rate_mbit=10.0),
        LinkChoice(name="b", medium="switched", delay_ms=1.0),
        LinkChoice(name="c", medium="802.11", phy="802.11g-54"),
    ]
    for link in links:
        made_by = kernel_links.made_by(link)
        part = made_by.partition("; without netem, ")[0 if netem or ";" not in made_by else 2]
        assert (part == kernel_links.PROGRAM) == kernel_links.takes_program(link, netem=netem)


def test_a_study_without_links_has_the_network_only() -> None:
    assert [link.plain for link in links_of(expand(read_text(SMALL_STUDY)), Abilities())] == [True]
