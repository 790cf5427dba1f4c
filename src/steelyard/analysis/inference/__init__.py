"""Statistical methods on plain numbers: intervals, tests, corrections, fits. Knows no factors and no trials."""
