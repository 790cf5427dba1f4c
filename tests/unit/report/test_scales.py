"""Scales and their ticks: round, inside, enough of them, and labels that tell them apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from steelyard.report.draw.scales import Domain, Scale, around, from_zero, logarithmic

unhurried = settings(deadline=None)
sizes = st.floats(1e-3, 1e6)
mosts = st.integers(2, 12)


@pytest.mark.parametrize("high", [0.0003, 0.45, 1.0, 4.6, 9.9, 11.0, 19.0, 24.0, 49.9, 99.0, 460.0, 1e7])
@pytest.mark.parametrize("most", [2, 4, 8])
def test_an_axis_from_0_has_a_second_number(high: float, most: int) -> None:
    ticks = Domain(0.0, high).ticks(most)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= most + 3
    assert all(0 <= tick <= high * (1 + 1e-9) for tick in ticks)


@unhurried
@given(st.floats(-1e6, 1e6), sizes, mosts)
def test_ticks_are_even_round_and_cover_the_domain(low: float, span: float, most: int) -> None:
    assume(span > abs(low) * 1e-6)
    domain = Domain(low, low + span)
    ticks = domain.ticks(most)
    assert all(domain.low <= tick <= domain.high for tick in ticks)
    assert 1 <= len(ticks) <= 1.25 * most + 1
    if len(ticks) > 2:
        step = float(f"{(ticks[-1] - ticks[0]) / (len(ticks) - 1):.0e}")
        assert f"{step:e}"[0] in "125"
        inner = ticks[1:-1]
        assert all(abs(tick / step - round(tick / step)) < 1e-6 for tick in inner)
        # Nothing is left out: less than a step lies beyond the outer ticks.
        assert ticks[0] - low < step * (1 + 1e-6)
        assert low + span - ticks[-1] < step * (1 + 1e-6)


@unhurried
@given(sizes, st.floats(1.05, 1e7), mosts)
@example(1.0, 10.0, 4)
@example(1e-3, 1e9, 4)
def test_a_logarithmic_axis_has_round_ticks_and_enough_of_them(low: float, factor: float, most: int) -> None:
    domain = Domain(low, low * factor, "log")
    ticks = domain.ticks(most)
    assert list(ticks) == sorted(set(ticks))
    assert all(domain.low <= tick <= domain.high for tick in ticks)
    assert 2 <= len(ticks) <= max(8, 1.25 * most + 1)
    if factor >= 100:
        assert all(f"{tick:.3e}"[:5] in ("1.000", "2.000", "5.000") for tick in ticks)


@unhurried
@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e6), min_size=1))
def test_an_axis_from_0_ends_on_a_round_number_above_all_values(values: list[float]) -> None:
    domain = from_zero(values)
    assert domain.low == 0
    assert domain.high >= max(values)
    assert max(values) * 1.06 <= domain.high * (1 + 1e-6)
    if max(values) > 1e-6:
        assert domain.high <= max(values) * 1.06 * 1.26


@unhurried
@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_an_axis_around_values_has_room_at_both_ends(values: list[float]) -> None:
    domain = around(values)
    assert domain.low < min(values)
    assert max(values) < domain.high


@unhurried
@given(sizes, st.floats(1.001, 1e4), st.floats(0, 1))
def test_scales_are_monotonic_and_end_at_their_ends(low: float, factor: float, share: float) -> None:
    for kind in ("linear", "log"):
        scale = Scale(Domain(low, low * factor, kind), 200.0, 20.0)
        assert scale.of(low) == pytest.approx(200)
        assert scale.of(low * factor) == pytest.approx(20)
        assert scale.of(low / 2) == pytest.approx(200)
        assert scale.of(low * factor * 2) == pytest.approx(20)
        one, other = low * factor**share, low * factor ** (share / 2)
        assert scale.of(one) <= scale.of(other) + 1e-9
    log = Scale(Domain(low, low * factor, "log"), 0.0, 100.0)
    assert log.of(low * math.sqrt(factor)) == pytest.approx(50, abs=1e-6)


@unhurried
@given(st.floats(-1e5, 1e5), st.floats(1e-2, 1e5), mosts)
def test_labels_tell_ticks_apart(low: float, span: float, most: int) -> None:
    domain = Domain(low, low + span)
    labels = domain.labels(domain.ticks(most))
    assert len(set(labels)) == len(labels)
    shown = [float(label.replace(",", "").replace("−", "-")) for label in labels]
    assert shown == pytest.approx(domain.ticks(most), abs=span * 1e-6)


def test_a_logarithmic_domain_leaves_values_out_that_have_no_logarithm() -> None:
    assert logarithmic([0.0, None, -1.0, 2.0, 8.0], 2.0) == Domain(1.0, 16.0, "log")
