"""Does a 95% interval hold what it says? Planted truths, drawn many times, through the functions of the report.

`python -m tools.coverage --write docs/explanation/coverage.md` draws them and writes the page. Nothing of
the analysis is written a second time here: each study calls the function that makes the report's number.
"""
