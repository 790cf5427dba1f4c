"""Nodes, through a node's prefix: commands (`command`), files (`files`), processes that are kept (`kept`).

What a node says about itself is `base`. The other modules serve these three, or read this machine: its facts, its
processes, its state and cache folders.
"""
