"""One file a command: its signature, what it calls, what it prints."""
