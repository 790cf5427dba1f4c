"""Domain values of the laboratory (frozen), and pure arithmetic on them; no I/O."""
