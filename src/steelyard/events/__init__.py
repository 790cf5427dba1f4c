"""Events of a study: those that the journal keeps (`kept`), and those that are only shown while they pass (`shown`)."""
