"""Links in the report: asked beside measured, before and after, and the caveat where they differ."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.link import LinkNumber, link_numbers
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis.made import cell, study

ETHERNET = {"name": "ethernet-100", "medium": "switched", "rate_mbit": 100.0}


def measured(link: dict[str, Any] | None, *mbit_per_s: float, after: float | None = None) -> list[TrialRecord]:
    """Trials of one start for each rate."""
    records = []
    for record, rate in zip(cell([[100.0]] * len(mbit_per_s)), mbit_per_s, strict=True):
        covariates = {"link_mbit_per_s": rate, "link_mbit_per_s_least": rate, "rtt_ms_min": 0.2}
        covariates |= {} if after is None else {"link_mbit_per_s_after": after}
        settings = TrialSettings({**record.settings.root, **({} if link is None else {"link": link})})
        records.append(record.model_copy(update={"covariates": covariates, "settings": settings}))
    return records


def rates(records: list[TrialRecord]) -> list[LinkNumber]:
    return [row for row in link_numbers(records) if row.quantity == "rate"]


def test_a_study_that_asks_for_no_link_has_no_table() -> None:
    assert list(link_numbers(cell([[100.0, 101.0]]))) == []


def test_one_row_for_each_number_over_all_starts() -> None:
    (row,) = rates(measured(ETHERNET, 95.0, 93.0, after=94.0))
    assert (row.link, row.unit, row.starts, row.differs) == ("ethernet-100", "Mbit/s", 2, False)
    assert row.asked == pytest.approx(95.64, abs=0.01)
    assert (row.before, row.after, row.least, row.most) == (94.0, 94.0, 93.0, 95.0)


def test_links_of_one_name_are_told_apart_by_their_fields() -> None:
    records = [*measured(None, 9000.0), *measured(ETHERNET, 95.0), *measured({**ETHERNET, "mtu": 1400}, 95.0)]
    assert [row.link for row in rates(records)] == ["nodal", "ethernet-100", "ethernet-100 (mtu 1400)"]
    assert rates(records)[0].asked is None


def test_a_link_that_is_not_as_asked_is_a_caveat() -> None:
    results = analyse(measured(ETHERNET, 95.0, 60.0), study(), seed=1)
    (caveat,) = [one for one in results.caveats if "not as asked: its rate was" in one]
    assert caveat == (
        "Link ethernet-100 was not as asked: its rate was 60 Mbit/s to 95 Mbit/s in 2 starts, 95.6 Mbit/s was asked "
        "for. Results of this link are of the link as it was measured."
    )
