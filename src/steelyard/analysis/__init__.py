"""Statistical analysis: from one row per trial to estimates. Sees `steelyard.model` only.

`analyse.analyse(records, study, seed=...)` gives `results.Results`; `tables.tables(results)` gives its tables.
`statistics` has one module per table, `inference` the statistical methods on plain numbers, `comparisons` the
comparison of levels and studies, `narrative` the sentences.
"""
