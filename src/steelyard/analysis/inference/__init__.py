"""Arithmetic of numbers to estimates: intervals, tests, corrections, fits. Knows no factors and no trials."""
