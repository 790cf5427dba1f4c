"""Running counts of one load: rows, histograms on request, and the totals for the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steelyard.dropin.stress.plan.orders import Plan
from steelyard.dropin.stress.print import hdr, output
from steelyard.dropin.stress.print.output_stream import Voice
from steelyard.dropin.stress.run import interval_stats
from steelyard.dropin.stress.run.interval_stats import Span, Uncertainty
from steelyard.wire.record import Interval


@dataclass
class Recorder:
    """Counts one load and prints its rows."""

    plan: Plan
    time_of: str
    voice: Voice | None
    histograms: hdr.LogWriter | None
    paced: bool
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    spans: dict[str, Span] = field(default_factory=dict)
    whole: Span = field(default_factory=Span)
    row_every: int = 1
    """Intervals between two rows; a row shows all that was done since the one before."""
    header_every: int | None = None
    _intervals: int = 0
    _unprinted: dict[str | None, Span] = field(default_factory=dict)
    """Counts since the last row, by operation; None: of all."""

    def take(self, interval: Interval) -> None:
        """Add one interval of all operations."""
        spans = interval_stats.spans_of(interval, self.plan.counted, self.time_of)
        # An operation has rows from the interval of its first occurrence.
        spans = {name: span for name, span in spans.items() if span.operations or name in self.spans}
        together = interval_stats.merged(spans.values(), side_by_side=True)
        if not spans:
            together = Span(seconds=interval.seconds)
        self.whole = interval_stats.merged((self.whole, together), side_by_side=False)
        for name, span in spans.items():
            before = self.spans.get(name, Span(seconds=self.whole.seconds - span.seconds))
            self.spans[name] = interval_stats.merged((before, span), side_by_side=False)
        self.spans = dict(sorted(self.spans.items()))
        self.uncertainty.feed(together.settled_rows_per_s)
        self._log(interval, spans)
        self._intervals += 1
        for key, span in [*spans.items(), (None, together)]:
            before = self._unprinted.get(key, Span())
            self._unprinted[key] = interval_stats.merged((before, span), side_by_side=False)
        if self._intervals % self.row_every == 0:
            self.print_rows()
        if self.voice is not None and self.header_every and self._intervals % self.header_every == 0:
            self.voice.say("", output.header())

    def print_rows(self) -> None:
        """Print what was not yet printed."""
        rows, self._unprinted = self._unprinted, {}
        together = rows.pop(None, Span())
        if self.voice is None or not together.operations:
            return
        share = self.uncertainty.share
        if len(self.spans) > 1:
            for name, span in sorted((str(name), span) for name, span in rows.items()):
                self.voice.say(output.row(name, span, self.spans[name], share))
        self.voice.say(output.row("total", together, self.whole, share))

    def _log(self, interval: Interval, spans: Mapping[str, Span]) -> None:
        if self.histograms is None:
            return
        measures = (("st", "service"), ("rt", "response"), ("wt", "lag"))
        tables = interval.tables
        for name in spans:
            for tag, measure in measures if self.paced else measures[:1]:
                buckets = tables.histogram(measure, name, None).buckets
                self.histograms.write(f"{name}-{tag}", interval.t_s, interval.seconds, buckets)
