"""Sentences of the page: method, facts, benchmarking crimes."""
