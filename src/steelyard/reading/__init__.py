"""Reading of a store: trials, estimates, comparisons and report input from the study's folder.

    from steelyard.reading import read
    reading = read("store/quickstart")
    reading.estimates

It needs only the store's folder. The command line, the report, `serve` and `verify` read through it.
"""

from __future__ import annotations

from steelyard.reading.reading import Reading, read

__all__ = ["Reading", "read"]
