"""What the numbers of a printed table contradict, rounding taken into account. Pure functions over intervals.

`finding` says what is found, `cell`, `pool`, `line`, `pair` check one thing each, `shipped` and `own` know which
numbers of which table belong together.
"""
