"""Campaigns: the laboratory is harmed on purpose, many times and in many ways, and every case is judged.

    python -m tools.campaigns damage                 # in full; resumes where it was stopped
    python -m tools.campaigns damage --anew          # from the beginning: after code was changed
    python -m tools.campaigns damage --list          # its cases
    python -m tools.campaigns damage --only torn     # cases whose name or stratum holds the word

A campaign is one module with one object that keeps the protocol `campaign.Campaign`, entered in `__main__.CAMPAIGNS`:

* `name`, `about`: what `python -m tools.campaigns NAME` calls it, and its sentence in the help;
* `limit_s`: the longest that one case may take; more is a finding of the kind `late`;
* `cases(seed)`: every case in order; the same seed gives the same cases. A `Case` has a name of its own, a stratum that
  the summary counts by (a phase, a command, a kind of file), and values of its own;
* `world(folder)`: a context manager that makes what all cases share, once (a small store, a server), and gives it;
* `run(world, case, folder)`: does one case in an empty folder of its own and returns its `Outcome`.

An `Outcome` holds the case's findings and its facts. The kinds of findings are those of the promise that
docs/explanation/faults.md makes (`campaign.FINDINGS`): a case without one is as it should be. Facts are free: exit
codes, what was printed, the file that was named.

`runner.carry_out` runs the cases that the file of outcomes (JSON lines) does not have yet with the same seed, writes a
line after each,
and goes on after a kill: a torn last line is done again. A case that itself falls over is a finding of the kind
`campaign`. `runner.table` is the summary. `command.call` runs a command line inside of this process, bounded in time.

`make test` runs a few cases of each campaign (tests/unit/tools/test_campaigns.py, test_input_campaigns.py; of kills:
tests/e2e/test_kill.py); all of them take minutes to hours.
"""
