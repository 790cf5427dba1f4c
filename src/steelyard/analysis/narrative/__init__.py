"""Results in sentences: the answer, what it does not say, what the data warn of."""
