"""The seam `system`: recipes of what is weighed; `base.py` is the protocol and its abilities."""
