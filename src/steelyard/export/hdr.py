"""Histograms as HdrHistogram interval logs: one file per trial and load node, one line per second and tag.

Tags: `response` and `service` for all answered operations together; where a trial has several operations, also one of
each operation, such as `read-response`. Values are nanoseconds, the maximum of a line is in milliseconds, as the
library's own log writer has them. To merge seconds, nodes or trials, add the histograms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from steelyard import hdrlog
from steelyard.atomic_file import output, output_folder
from steelyard.export.attempts import attempt_name, dilation_of
from steelyard.format import treatment_label
from steelyard.heavy import pl
from steelyard.model.trial import TrialRecord
from steelyard.shown_text import visible
from steelyard.store.read import Store

VERSION: Final = "1.3"
"""Version of the log format: the first with tags. Its histograms are in encoding V2."""
MEASURES: Final = ("response", "service")
NOT_IN_A_TAG: Final = re.compile(r"[\s,]+")


def write(store: Store, records: Iterable[TrialRecord], folder: Path, limits: Sequence[str] = ()) -> int:
    """Write `TRIAL.NODE.hdr` for every load node of these trials into `folder`; gives the number of files.

    Only the phases that the responses rest on, without the warm-up. `limits` of the study's answer are in each head.
    Raises OSError that names the file.
    """
    written = 0
    folder = output_folder(folder)
    for record in records:
        buckets = store.answered([record], record.measured_phases, MEASURES).collect(engine="streaming")
        for (node,), of_node in buckets.group_by("node", maintain_order=True):
            with output(folder / f"{attempt_name(record)}.{node}.hdr") as file:
                for text in _log(record, str(node), of_node, limits):
                    file.write(text.encode("utf-8"))
            written += 1
    return written


def _log(record: TrialRecord, node: str, buckets: pl.DataFrame, limits: Sequence[str]) -> Iterable[str]:
    """The log of one load node: header, then the lines in order of time."""
    operations = buckets["operation"].unique().sort().to_list()
    begun_s = float(buckets["t_s"].min())  # type: ignore[arg-type]
    facts = {
        "study": record.study,
        "trial": attempt_name(record),
        "cell": treatment_label(record.treatment, full=True),
        "node": node,
        "outcome": record.verdict.outcome,
        "unit": "ns, maxima in ms",
        **dilation_of(record),
        **({"limits": " ".join(limits)} if limits else {}),
    }
    yield hdrlog.head(", ".join(f"{name}: {visible(value)}" for name, value in facts.items()), begun_s, VERSION)
    for (t_s, seconds), of_second in buckets.sort("t_s").group_by("t_s", "seconds", maintain_order=True):
        for measure in MEASURES:
            of_measure = of_second.filter(pl.col("measure") == measure)
            yield from _lines(measure, float(t_s) - begun_s, float(seconds), of_measure)
            for operation in operations if len(operations) > 1 else ():
                tag = f"{operation}-{measure}"
                of_operation = of_measure.filter(pl.col("operation") == operation)
                yield from _lines(tag, float(t_s) - begun_s, float(seconds), of_operation)


def _lines(tag: str, start_s: float, seconds: float, buckets: pl.DataFrame) -> Sequence[str]:
    """The line of one tag and second; none if nothing was counted."""
    if buckets.is_empty():
        return ()
    middle_ns = (pl.col("bucket_low_ns") + pl.col("bucket_high_ns")) // 2
    counts = buckets.group_by(middle_ns.alias("value_ns")).agg(pl.col("count").sum()).sort("value_ns").rows()
    return (hdrlog.line(start_s, seconds, counts, tag=NOT_IN_A_TAG.sub("_", tag)),)
