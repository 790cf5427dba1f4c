"""Compiler of settings into orders for the agent and CQL of tables."""
