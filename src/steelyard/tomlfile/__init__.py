"""TOML files that people write: where a key stands, and what is wrong with its value.

Studies and workload files are read with it; it knows neither.
"""
