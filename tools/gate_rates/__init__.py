"""Error rates of the gate: how often it is red or green for planted builds, beside what `check --gate` announces.

`python -m tools.gate_rates --write docs/explanation/gate.md` draws the studies and writes the page's tables. Nothing is
reimplemented here: each drawn study goes through the functions that `steelyard gate` calls.
"""
