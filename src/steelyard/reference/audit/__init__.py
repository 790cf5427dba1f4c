"""Consistency audit of printed tables, with rounding taken into account: pure functions on intervals.

`finding` has the result types; `single_cell`, `pooled_rows`, `regression_rows`, `two_groups` and `derived_columns`
check one kind of row each; `shipped_tables` and `csv_input` know which numbers of a table belong together; `headings`
knows what a heading means, `csv_file` how a file is laid out and how it writes numbers.
"""
