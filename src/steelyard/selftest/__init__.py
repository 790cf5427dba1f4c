"""Self-tests of the laboratory: calibration of the load engine, and proofs that its figures are right."""
