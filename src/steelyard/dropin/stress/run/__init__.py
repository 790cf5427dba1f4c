"""Carry out the orders of a command and count what comes of them."""
