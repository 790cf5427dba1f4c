"""Figures: a module draws one kind; `catalogue.py` lists those made from results, the page asks for the others."""
