"""Steelyard: a laboratory that weighs distributed databases."""

__version__ = "0.1.0"
