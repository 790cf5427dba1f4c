"""Consistency audit of printed tables, with rounding taken into account: pure functions on intervals.

`finding` has the result types; `single_cell`, `pooled_rows`, `regression_rows` and `two_groups` check one kind of
row each; `shipped_tables` and `csv_input` know which numbers of a table belong together.
"""
