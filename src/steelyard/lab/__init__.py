"""The conductor: carries out a plan trial by trial and writes the store."""
