"""Exports: a store written in the formats of other tools. Each module writes one format.

Whatever is large (histograms, samples) is read and written one trial at a time; files are written whole or not at all.
Tables and figures for a paper: `steelyard.report.export`.
"""
