"""Plug-ins: found by name (`find`), and made from complete settings (`parts`)."""
