"""The conductor: runs a plan trial by trial and writes the store."""
