"""Published results as data, with their sources, and what can be said about such tables without the raw data.

Sees `model` only. `tables` loads what is shipped, `audit` looks for contradictions, `beside` lays own numbers beside.
"""
