"""From the words of a command line, and a profile, to settings; what we do not have is refused by name."""
