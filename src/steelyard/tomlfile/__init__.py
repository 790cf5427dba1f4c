"""TOML files: text, tree, line of each key, and error messages about its value.

Studies and workload files are read with it; it depends on neither.
"""
