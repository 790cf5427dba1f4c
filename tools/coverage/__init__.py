"""Coverage simulation: how often the report's 95% intervals hold a planted truth.

`python -m tools.coverage --write docs/explanation/coverage.md` simulates the studies and writes the page. The analysis
is not reimplemented here: each simulated study calls the function that computes the report's number.
"""
