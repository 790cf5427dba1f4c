"""Drop-ins: command lines of other tools, compiled to orders of our agent, with their output imitated line by line.

`agent_run` carries out one order on this machine outside of a study; each other tool has a package of its own.
"""
