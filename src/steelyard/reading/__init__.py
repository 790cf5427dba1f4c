"""The reading half's conductor: a store in, everything that can be said of it out.

    from steelyard.reading import read
    reading = read("store/quickstart")
    reading.estimates

It needs nothing but the store's folder. The command line, the report, `serve` and `verify` read through it.
"""

from __future__ import annotations

from steelyard.reading.reading import Reading, read

__all__ = ["Reading", "read"]
