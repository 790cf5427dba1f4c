"""Numbers carry as many digits as they deserve."""

from __future__ import annotations

from datetime import datetime

import pytest

from steelyard import format as shown
from steelyard.model.estimate import Estimate


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (1234.5678, 12.0, "1,235"),
        (12.3456, 0.31, "12.35"),
        (0.000123, None, "0.0001230"),
        (1234.5678, None, "1,235"),
        (-3.25, 0.5, "−3.25"),
        (5.0, None, "5"),
        (0.0, None, "0"),
        (None, None, "–"),
        (float("nan"), None, "–"),
    ],
)
def test_number(value: float | None, spread: float | None, text: str) -> None:
    assert shown.number(value, spread=spread) == text


def test_a_number_that_stands_alone_has_no_zeros_at_its_end() -> None:
    assert shown.number(7.2, trim=True) == "7.2"


def test_an_estimate_shows_its_interval_with_the_same_digits() -> None:
    estimate = Estimate(value=15.6123, low=14.88, high=16.34, n=4, unit="s", method="t")
    assert shown.with_interval(estimate) == "15.61 [14.88, 16.34]"
    assert shown.with_interval(estimate, 1.0) == "15.6 [14.9, 16.3]", "no finer than a tenth of its resolution"


def test_an_estimate_without_interval_shows_none() -> None:
    assert shown.with_interval(Estimate(value=15.6123, n=3, unit="s", method="median")) == "15.61"


def test_large_milliseconds_become_seconds() -> None:
    scale = shown.scale_for("ms", 63_000.0)
    estimate = scale.estimate(Estimate(value=63_000.0, low=62_000.0, high=64_000.0, n=9, unit="ms", method="t"))
    assert (estimate.value, estimate.low, estimate.high, estimate.unit) == (63.0, 62.0, 64.0, "s")
    assert shown.scale_for("ms", 900.0).unit == "ms"


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "–"), (float("nan"), "–"), (0.0, "< 0.001"), (0.00099, "< 0.001"), (0.001, "0.0010"), (0.0034, "0.0034"),
        (0.034, "0.034"), (0.2345, "0.23"), (0.5, "0.50"), (0.994, "0.99"), (0.995, "> 0.99"), (1.0, "> 0.99"),
    ],
)  # fmt: skip
def test_a_p_value_has_two_digits_and_is_never_zero(p: float | None, text: str) -> None:
    assert shown.p_value(p) == text


def test_a_p_value_in_a_sentence() -> None:
    assert [shown.p_equals(p) for p in (None, 0.0, 0.034, 1.0)] == ["unknown", "< 0.001", "= 0.034", "> 0.99"]


@pytest.mark.parametrize(
    ("seconds", "text", "guess"),
    [
        (0.0, "0 s", "0 s"), (0.2, "0.2 s", "0.2 s"), (4.23, "4.2 s", "4.2 s"), (5.0, "5 s", "5 s"),
        (9.96, "10 s", "10 s"), (38.4, "38 s", "38 s"), (90.0, "1 min 30 s", "2 min"), (245.0, "4 min 05 s", "4 min"),
        (599.7, "10 min", "10 min"), (3540.0, "59 min", "59 min"), (3590.0, "60 min", "60 min"),
        (5369.0, "89 min", "1 h 30 min"), (5400.0, "1 h 30 min", "1 h 30 min"), (7200.0, "2 h", "2 h"),
        (10_200.0, "2 h 50 min", "2 h 50 min"), (10_500.0, "2 h 55 min", "3 h"),
        (21_900.0, "6 h 05 min", "6 h"), (50 * 3600.0, "50 h", "50 h"), (80 * 3600.0, "3 days 08 h", "3 days"),
        (-1.0, "0 s", "0 s"), (None, "–", "–"), (float("inf"), "–", "–"),
    ],
)  # fmt: skip
def test_durations_and_forecasts(seconds: float | None, text: str, guess: str) -> None:
    assert shown.duration(seconds) == text
    assert shown.forecast(seconds) == guess


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "–"), (0, "0 B"), (1023, "1,023 B"), (1024, "1 KiB"), (3 * 2**29, "1.5 GiB"), (7.0e8, "668 MiB")],
)
def test_sizes_of_data(size: float | None, text: str) -> None:
    assert shown.data_size(size) == text


def test_rates_signs_and_per_cent() -> None:
    assert [shown.data_rate(rate) for rate in (None, 0.0, 21_400.0, 1.5e6, 1.2e8)] == [
        "–", "0 MB/s", "0.021 MB/s", "1.5 MB/s", "120 MB/s",
    ]  # fmt: skip
    assert [shown.signed(value) for value in (-30.61, 3.0, 0.934, -205.2)] == ["−31", "+3.0", "+0.93", "−205"]
    assert shown.signed(-30.61, digits=3) == "−30.6"
    assert [shown.percent(value) for value in (None, 0.0, 0.0041, 0.4, 1.0)] == ["–", "0%", "0.41%", "40%", "100%"]


def test_plurals_and_lists() -> None:
    assert [shown.count(n, "start") for n in (0, 1, 2, 1000)] == ["0 starts", "1 start", "2 starts", "1,000 starts"]
    assert shown.count(2, "process", "processes") == "2 processes"
    assert [shown.listed(words) for words in ((), ("a",), ("a", "b", "c"))] == ["", "a", "a, b and c"]


def test_treatments() -> None:
    assert shown.treatment_label({"nodes": 3, "workload": "A"}) == "workload A, 3 nodes"
    assert shown.treatment_label({"site.nodes": 1, "load.threads": 8}) == "8 threads, 1 node"
    assert shown.treatment_label({"system.compression": "none", "load.threads": 1}) == "compression none, 1 thread"
    assert shown.treatment_label({}) == "all trials"


def test_times_by_the_clock() -> None:
    at = datetime(2026, 9, 21, 14, 3, 21).timestamp()
    day = 86_400
    assert shown.clock(at, at + 60) == "14:03"
    assert shown.clock(at, at + 60, to_the_second=True) == "14:03:21"
    assert shown.clock(at, at - 2 * day) == "Mon 21 Sep 14:03"
    assert shown.clock(at, at + 400 * day) == "2026-09-21 14:03"
    for beyond in (None, 1e300, float("inf"), -1e300):
        assert shown.clock(beyond, at) == "–"


def test_no_two_notes_have_the_same_letter() -> None:
    assert [shown.note_letter(place) for place in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "a", "z", "aa", "ab", "az", "ba", "zz", "aaa",
    ]  # fmt: skip


def test_a_factor_keeps_its_section_beside_one_of_the_same_name() -> None:
    both = {"load.threads": 8, "system.threads": 2}
    assert shown.treatment_label(both) == "load.threads 8, system.threads 2"
    assert shown.treatment_label({"load.threads": 8}, ["system.threads"]) == "load.threads 8"
    assert shown.treatment_label({"load.threads": 8, "nodes": 3}, full=True) == "load.threads 8, 3 nodes"
    assert shown.factor_label("workload.name") == "workload"
    assert shown.factor_label("site.nodes") == "nodes"


def test_two_levels_name_their_factor_once() -> None:
    assert shown.pair_label("system.compression", "lz4", "none") == "compression lz4 against none"
    assert shown.pair_label("nodes", 3, 1) == "3 nodes against 1 node"


@pytest.mark.parametrize(
    ("seconds", "text"), [(50, "50 s"), (3420, "57 min"), (19_800, "5.5 h"), (151_000, "42 h"), (300_000, "3 days")]
)
def test_a_brief_forecast_is_in_one_unit(seconds: float, text: str) -> None:
    assert shown.brief_forecast(seconds) == text
