"""The page on wireless: its model gives what is published, its rows are what the agent simulates."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.wireless.bianchi import Model, model_b, model_g, model_g_rts, model_n
from tools.wireless.cells import AGGREGATES, MEDIA, SEED, Medium, simulated, throughput_mbit
from tools.wireless.page import FIGURE, PROMISED, percent_signed
from tools.wireless.scenarios import scenarios

from steelyard.model.link import BASIC_MBIT, RATES_MBIT

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explanation" / "wireless.md"


@pytest.mark.parametrize(
    ("model", "five", "ten"),
    [(model_g(54, 24), 29.286, 27.376), (model_g(6, 6), 4.690, 4.320), (model_b(), 6.382, 6.027)],
    ids=["g-54", "g-6", "b-11"],
)
def test_the_model_gives_the_values_of_ns_3(model: Model, five: float, ten: float) -> None:
    """src/wifi/examples/wifi-bianchi.cc, whose frames are 2 bytes shorter."""
    assert model.throughput_mbit(5) == pytest.approx(five, rel=1e-3)
    assert model.throughput_mbit(10) == pytest.approx(ten, rel=1e-3)


def test_one_station_is_arithmetic_and_rts_costs_where_nobody_is_hidden() -> None:
    assert model_g(54, 24).throughput_mbit(1) == pytest.approx(30.495, abs=1e-3)
    assert 0.77 <= model_g_rts(54, 24).throughput_mbit(2) / model_g(54, 24).throughput_mbit(2) <= 0.84
    # 59.55 Mb/s of UDP payload (1,472 of 1,500 bytes) in ns-3's documentation of aggregation.
    assert model_n(28).throughput_mbit(1) * 1472 / 1500 == pytest.approx(59.55, rel=0.005)


def test_the_page_and_its_figure_are_there_and_promise_nothing_that_is_not_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "It is kept in all" in text
    assert f"figures/{FIGURE}" in text
    assert (ROOT / "docs" / "figures" / FIGURE).read_text(encoding="utf-8").startswith("<svg")
    rows = [row for row in text.splitlines() if row.startswith("| 802.11")]
    assert len(rows) == sum(len(medium.stations) for medium in (*MEDIA, *AGGREGATES))


@pytest.mark.agent
@pytest.mark.parametrize("medium", [MEDIA[0], MEDIA[3], AGGREGATES[2]], ids=lambda medium: medium.name)
def test_a_row_of_the_page_is_what_the_agent_simulates(medium: Medium) -> None:
    number = medium.stations[1]
    simulated_mbit, model_mbit = throughput_mbit(medium, number), medium.model.throughput_mbit(number)
    difference = simulated_mbit / model_mbit - 1
    assert abs(difference) <= PROMISED
    row = next(row for row in PAGE.read_text().splitlines() if row.startswith(f"| {medium.name} | {number} |"))
    cells = [cell.strip() for cell in row.split("|")]
    assert float(cells[3]) == pytest.approx(simulated_mbit, abs=0.006)
    assert float(cells[4]) == pytest.approx(model_mbit, abs=0.006)
    assert cells[5] == percent_signed(difference)


def test_what_is_expected_of_a_scenario_comes_from_the_model_and_stands_on_the_page() -> None:
    expected = {each.name: each.expected for each in scenarios()}
    s_2, s_5 = (model_g(54, 24).throughput_mbit(number) for number in (2, 5))
    assert (
        expected["2 stations of 54 Mb/s that do not hear each other, retry limit 7"] == f"below S(2) = {s_2:.2f} Mb/s"
    )
    assert expected["5 stations are offered twice what one can send"] == f"saturates at S(5) = {s_5:.2f} Mb/s"
    text = PAGE.read_text(encoding="utf-8")
    for each in scenarios():
        assert f"| {each.name} | {each.expected} |" in text
        assert f"| `{each.arguments}` |" in text


@pytest.mark.agent
def test_two_scenarios_of_the_page_are_what_the_agent_simulates() -> None:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.endswith("` |")]
    shown = {row.split("|")[1].strip(): row.split("|")[3].strip() for row in rows}
    relayed, *_, light = scenarios()
    assert shown[relayed.name] == relayed.simulated()
    assert shown[light.name] == light.simulated()


@pytest.mark.agent
@pytest.mark.parametrize("amendment", RATES_MBIT)
def test_every_rate_that_a_study_may_name_is_one_of_the_agent(amendment: str) -> None:
    for rate in RATES_MBIT[amendment]:
        phy = f"{amendment}-{rate:g}"
        for basic in [basic for basic in BASIC_MBIT[amendment] if basic <= rate]:
            answer = simulated("--phy", phy, "--ack-rate", f"{basic:g}", "--stations", "1", "--seconds", "0.1")
            assert answer["throughput_mbit_per_s"] > 0, (phy, basic)


@pytest.mark.agent
def test_the_same_arguments_give_the_same_line() -> None:
    arguments = ("--phy", "802.11g-54", "--stations", "5", "--seconds", "2")
    first = simulated(*arguments)
    simulated.cache_clear()
    assert simulated(*arguments) == first
    assert first["seed"] == SEED
    assert {"throughput_mbit_per_s", "collisions", "jain_index", "retries", "queue_drops", "lost"} <= set(first)
    assert simulated(*arguments, "--access-points", "2")["throughput_mbit_per_s"] == pytest.approx(29, abs=2)


def test_changes_are_shown_with_their_sign() -> None:
    assert [percent_signed(value) for value in (0.0123, -0.0123, 0.0001, -0.0001)] == ["+1.2%", "−1.2%", "0.0%", "0.0%"]
