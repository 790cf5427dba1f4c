"""Pages of the documentation that are made, wholly or in part, from the code."""
