"""What the laboratory knows about itself: the ceiling of its load engine, and proofs that its figures are honest."""
