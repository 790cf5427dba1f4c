"""Theme, definitions, hover texts and embedded data of the page."""
