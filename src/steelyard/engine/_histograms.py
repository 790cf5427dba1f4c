"""Decoder for compressed HDR histograms from third-party tools."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram

from steelyard.model.histogram import Bucket


def decoded(text: str) -> list[Bucket]:
    """Occupied buckets (low, high, count), both bounds inclusive, of a V2 histogram, deflated, in base64, in the tool's
    unit: nanoseconds."""
    histogram = HdrHistogram.decode(text)
    return [
        (
            int(histogram.get_lowest_equivalent_value(item.value_iterated_to)),
            int(histogram.get_highest_equivalent_value(item.value_iterated_to)),
            int(item.count_added_in_this_iter_step),
        )
        for item in histogram.get_recorded_iterator()
    ]
