"""Tables of statistics show numbers of the main response in the page's unit, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.row import columns_of
from steelyard.analysis.statistics.coefficient import Coefficient
from steelyard.analysis.statistics.link import LinkNumber
from steelyard.analysis.statistics.summary import Summary
from steelyard.format import scale_for
from steelyard.model.estimate import Estimate
from steelyard.report.data.presentation import View, view
from steelyard.report.tables.analysed import _cell
from tests.unit.report import synthetic


@pytest.fixture(scope="module")
def in_seconds() -> View:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    return replace(view(results), scale=scale_for("ms", 60_000.0))


def shown(this: View, row: type, column: str, value: float | Estimate, **fields: object) -> str:
    (found,) = (one for one in columns_of(row) if one.name == column)
    return _cell(this, found, value, row.model_construct(**fields)).text


def test_times_of_the_response_are_in_seconds(in_seconds: View) -> None:
    own = {"response": in_seconds.results.response, "unit": "ms"}
    mean = Estimate(value=5210.0, n=3, unit="ms", method="mean")
    assert shown(in_seconds, Summary, "mean", mean, **own).startswith("5.21")
    slope = Estimate(value=5210.0, n=3, unit="ms per step", method="line")
    assert shown(in_seconds, Coefficient, "value", slope, **own).startswith("5.21")


def test_factors_and_numbers_of_other_units_stay(in_seconds: View) -> None:
    own = {"response": in_seconds.results.response, "unit": "ms"}
    factor = Estimate(value=1.25, n=3, unit="times per step", method="line")
    assert shown(in_seconds, Coefficient, "value", factor, **own).startswith("1.25")
    assert shown(in_seconds, LinkNumber, "before", 95.64, unit="Mbit/s") == "95.64"
