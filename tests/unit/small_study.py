"""The text of a small study, for tests of what happens before or around it."""

from __future__ import annotations

SMALL_STUDY = """\
[study]
name = "small"
question = "what is refused?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
records = 10
[load]
operations = 10
[design]
starts = 2
[factors]
nodes = [1, 2]
"""
