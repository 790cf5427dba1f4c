"""Link between nodes: what belongs to which medium, and what one connection can carry over it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from steelyard.model.link import PLAIN, LinkChoice


def test_the_network_as_it_is_says_nothing() -> None:
    assert PLAIN.plain
    assert PLAIN.given == {}
    assert not LinkChoice(mtu=9000).plain
    assert LinkChoice(mtu=9000).given == {"mtu": 9000}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"medium": "switched", "phy": "802.11g-54"}, "medium switched has no phy: only medium 802.11 has"),
        ({"medium": "802.11", "phy": "802.11g-54", "rate_mbit": 10}, "medium 802.11 has no rate_mbit"),
        ({"medium": "802.11"}, "needs a phy"),
        ({"medium": "802.11", "phy": "802.11g-11"}, "allowed: 802.11b-1, 2, 5.5, 11; 802.11g-6"),
        ({"medium": "802.11", "phy": "802.11ac-65"}, "is none"),
        ({"medium": "802.11", "phy": "802.11g-54", "aggregate": 4}, "802.11g-54 has no A-MPDU"),
        ({"medium": "switched", "delay_ms": 1.0, "jitter_ms": 2.0}, "jitter_ms 2 is more than delay_ms 1"),
        ({"loss_percent": 100}, "less than 100"),
        ({"mtu": 100}, "greater than or equal to 576"),
    ],
)
def test_fields_that_cannot_be(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        LinkChoice.model_validate(fields)


def test_a_section_is_judged_by_its_medium_only_when_that_is_known() -> None:
    """A study may set a field of the link that a factor chooses."""
    assert LinkChoice(rts_threshold_bytes=500, rate_mbit=10).medium is None


def test_goodput_is_what_headers_leave() -> None:
    ethernet = LinkChoice(medium="switched", rate_mbit=100)
    assert ethernet.goodput_mbit_per_s == pytest.approx(100 * 1448 / 1514)
    assert ethernet.model_copy(update={"mtu": 9000}).goodput_mbit_per_s == pytest.approx(100 * 8948 / 9014)
    assert LinkChoice(medium="802.11", phy="802.11g-54").goodput_mbit_per_s is None
    assert (ethernet.round_trip_ms, LinkChoice(delay_ms=10).round_trip_ms) == (None, 20)
