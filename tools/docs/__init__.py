"""Generated documentation: `python -m tools.docs` checks the files, `--write` writes them."""
