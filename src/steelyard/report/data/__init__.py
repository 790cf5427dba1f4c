"""Data of figures: axis, series, scale, rows of charts, node readings."""
