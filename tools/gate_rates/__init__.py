"""Error rates of the gate: how often it is red or green for planted builds, beside what `check --gate` announces.

`python -m tools.gate_rates --write docs/explanation/gate.md` draws the studies and writes the page's tables. Nothing is
reimplemented here: start means go through the functions that give the gate its intervals and verdicts, and the first
studies of each row through the whole gate, from the frame of their trials on, which must say the same.
"""
