"""Progress of a running study: events, the state folded from them, and the live file that readers watch."""
