"""The report: one HTML page, exported tables and figures, from what `reading` has read."""
