"""Comparison of levels and studies: ratios of start means, noise floors, confounders."""
