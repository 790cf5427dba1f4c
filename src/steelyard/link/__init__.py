"""Links: the paths between nodes, measured."""
