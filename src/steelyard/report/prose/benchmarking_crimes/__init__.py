"""Benchmarking crimes: what the report suspects itself of, by commission and by omission."""
