"""Disruptions: what is done to nodes of a running cluster, a module each."""
