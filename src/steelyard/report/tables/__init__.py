"""Tables of the page and of exports."""
