"""Statistics are computed when they are asked for, once, from each other; modules are called like their tables."""

from __future__ import annotations

import pkgutil

import pytest

from steelyard.analysis import statistics
from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.row import Row, columns_of
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.analysis.statistics.post_hoc import PostHoc
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.validity import Validity

from .made import cell, study


class First(Row):
    """A row for the tests."""

    n: int
    """How often it was computed before."""


class Second(Row):
    """Another."""

    n: int
    """That of the first, and one."""


def statistic(name, row, compute) -> Statistic:
    return Statistic(name=name, row=row, title=name, section=Section.ANSWER, compute=compute)


def context(*of: Statistic) -> Context:
    asked = study()
    return Context(frame_of(cell([[5.0, 6.0]]), asked), asked, seed=1, statistics=of)


def test_a_module_is_called_like_its_table():
    modules = {found.name for found in pkgutil.iter_modules(statistics.__path__)}
    assert {one.name for one in statistics.every()} == modules


def test_every_statistic_has_columns_and_a_place():
    for one in statistics.every():
        assert columns_of(one.row), one.name
        assert one.title.format(response="time", size="nodes")
    places = [(list(Section).index(one.section), one.order) for one in statistics.every()]
    assert places == sorted(places)
    assert len(set(places)) == len(places), "two statistics of one section have one place"


def test_rows_are_computed_once_and_only_when_asked_for():
    asked = []

    def first(context):
        asked.append("first")
        return [First(n=0)]

    made = context(
        statistic("second", Second, lambda context: [Second(n=one.n + 1) for one in context.of(First)]),
        statistic("first", First, first),
    )
    assert asked == []
    assert made.of(Second) == (Second(n=1),)
    assert made.of(First) == (First(n=0),)
    assert asked == ["first"]


def test_statistics_that_need_each_other_are_refused():
    made = context(
        statistic("first", First, lambda context: [First(n=len(context.of(Second)))]),
        statistic("second", Second, lambda context: [Second(n=len(context.of(First)))]),
    )
    with pytest.raises(RuntimeError, match="needs its own rows"):
        made.of(First)


def test_results_give_rows_by_their_type():
    found = analyse(cell([[5.0, 6.0], [5.5, 6.5]]), study(), seed=1)
    assert len(found.of(Validity)) == 1
    assert {one.response for one in found.main(Summary)} == {"execution_time_ms"}
    assert "execution_time_ms" not in {one.response for one in found.others(Summary)}
    assert found.main(Summary) + found.others(Summary) == found.of(Summary)
    assert found.of(PostHoc) == ()
    again = Results.model_validate_json(found.model_dump_json())
    assert again == found
    assert isinstance(again.of(Summary)[0], Summary)
    with pytest.raises(KeyError):
        found.of(First)
