"""Whether a store says what its raw files say: nothing here measures, nothing here writes."""
