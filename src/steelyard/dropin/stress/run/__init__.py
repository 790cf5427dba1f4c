"""Run the orders of a command and count their results."""
