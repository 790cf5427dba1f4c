"""Rules that both halves judge by: treatments, responses, verdicts, stopping, warm-up cut, noise floor. Pure."""
