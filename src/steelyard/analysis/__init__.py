"""From one row per trial to estimates. Sees `steelyard.model` only.

`analyse(records, study, seed=...)` gives `results.Results`; `tables.tables(results)` gives its tables. What is computed
is in `statistics`, one module for each table; `inference` has the arithmetic of numbers, `comparisons` what levels and
studies are held against each other by, `narrative` the sentences.
"""

from steelyard.analysis.analyse import analyse

__all__ = ["analyse"]
