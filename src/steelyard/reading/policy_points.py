"""Points of a scaling policy's metric from the tables of a stored trial."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.heavy import pl
from steelyard.judging.measures import Facts, metrics_of
from steelyard.judging.policy_points import OF_CLIENTS, Seen
from steelyard.model.outcome import ANSWERED
from steelyard.model.trial import TrialRecord
from steelyard.reading.node_strips import readings_of_table


def seen_of(metric: str, record: TrialRecord, samples: pl.DataFrame, facts: Facts, intervals: pl.DataFrame) -> Seen:
    """What a trial's points rest on. `intervals`: the store's columns, all load nodes."""
    of_clients = metric in OF_CLIENTS
    readings = {} if of_clients or not metric else readings_of_table(samples, metrics_of([metric]))
    answers = _answers(intervals.filter(pl.col("phase").is_in(record.measured_phases))) if of_clients else {}
    return Seen(readings, facts, record.shares, answers, record.activities)


def _answers(intervals: pl.DataFrame) -> Mapping[str, list[tuple[float, list[tuple[int, int, int]]]]]:
    rows = intervals.filter((pl.col("measure") == "response") & pl.col("outcome").is_in(list(ANSWERED)))
    columns = ("node", "t_s", "seconds", "bucket_low_ns", "bucket_high_ns", "count")
    answers: dict[str, list[tuple[float, list[tuple[int, int, int]]]]] = {
        str(node): [] for node in intervals["node"].unique().sort()
    }
    for node, t_s, seconds, low, high, n in rows.select(columns).sort("node", "t_s").iter_rows():
        of_node = answers.setdefault(str(node), [])
        if not of_node or of_node[-1][0] != t_s + seconds:
            of_node.append((t_s + seconds, []))
        of_node[-1][1].append((int(low), int(high), int(n)))
    return answers
