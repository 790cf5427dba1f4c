"""Drop-in replacements: other tools' command lines, compiled to orders for our agent, with the same output format.

`agent_run` runs one order on this machine outside a study; each other tool has its own package.
"""
