"""From one row per trial to estimates. Sees `steelyard.model` only.

`analyse(records, study, seed=...)` gives `results.Results`; `tables.tables(results)` gives its tables.
"""

from steelyard.analysis.analyse import analyse

__all__ = ["analyse"]
