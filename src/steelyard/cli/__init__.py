"""The command line: `main.py` is its table of contents, `commands/` has a file per command."""
