"""Rules that both halves judge by: responses, verdicts, stopping, warm-up cut, noise floor. Pure."""
