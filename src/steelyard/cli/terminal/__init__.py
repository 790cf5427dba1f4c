"""Terminal output: tables, lines of a load, and the one way to print a line."""
