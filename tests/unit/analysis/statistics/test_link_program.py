"""Frames that the link program moved, by link: counted over attempts, with the mean that is judged."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.link_program import LinkProgramRow, link_programs
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis.made import cell, study

RADIO = {"name": "802.11g", "medium": "802.11", "phy": "802.11g-54"}


def moved(delivered: int, late_ms: float | None, **changes: float) -> MovedFrames:
    counts = {"seconds": 10, "frames": delivered, "delivered": delivered, "dropped": 1, "lost": 2, "unread": 0}
    return MovedFrames.model_validate(
        {**counts, "late_ms_mean": late_ms, "late_ms_max": 3.0, "stalled_s": 0.1, "cpu_s": 2.0, **changes}
    )


def over_radio(*counted: MovedFrames | None) -> list[TrialRecord]:
    """Trials of one start, in which this was counted."""
    return [
        record.model_copy(
            update={"moved_frames": each, "settings": TrialSettings({**record.settings.root, "link": RADIO})}
        )
        for record, each in zip(cell([[100.0] * len(counted)]), counted, strict=True)
    ]


def test_a_study_without_a_link_program_has_no_table() -> None:
    assert list(link_programs(over_radio(None, None))) == []


def test_lateness_is_the_mean_over_frames_and_the_worst_over_attempts() -> None:
    (row,) = link_programs(over_radio(moved(100, 0.1), None, moved(300, 0.5, late_ms_max=8.0, stalled_s=0.2, unread=1)))
    assert (row.link, row.attempts, row.frames, row.unread, row.dropped, row.lost) == ("802.11g", 2, 400, 1, 2, 4)
    assert row.late_ms_mean == pytest.approx(0.4)
    assert (row.late_ms_worst, row.late_ms_max, row.stalled_percent_worst, row.cpu_cores) == (0.5, 8.0, 2.0, 0.2)


def test_nothing_delivered_has_no_lateness() -> None:
    (row,) = link_programs(over_radio(moved(0, None, late_ms_max=0.0, seconds=0)))
    assert (row.late_ms_mean, row.late_ms_worst, row.stalled_percent_worst, row.cpu_cores) == (None,) * 4


def test_it_is_in_the_results() -> None:
    results = analyse(over_radio(moved(100, 0.1), moved(100, 0.3)), study(), seed=1)
    (row,) = results.of(LinkProgramRow)
    assert row.late_ms_mean == pytest.approx(0.2)
