"""Figures: a module draws one kind; `catalogue.py` lists those of the page."""
