"""Published results as data with their sources, and consistency checks of printed tables.

Depends on `model` only. `tables` loads the shipped tables, `audit` looks for contradictions, `comparison` compares own
numbers with published ones.
"""
