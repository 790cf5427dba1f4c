"""Nodes: commands, files, processes and facts through a node's prefix; state and cache folders."""
