"""Files of the repository that are made from the models: `python -m tools.docs` checks them, `--write` makes them."""
