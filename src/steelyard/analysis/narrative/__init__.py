"""Results in sentences: the answer and its caveats."""
