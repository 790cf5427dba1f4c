"""Verification of a store: results, verdicts and reports recomputed from its raw files; read only."""
