"""The commands, one file per command: its signature, what it calls, what it prints."""
