"""Nouns of the laboratory as frozen values, and pure arithmetic on them; no input, no output."""
