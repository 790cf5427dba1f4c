"""Plug-in interface `system`: recipes for the system under test; `base.py` is the protocol and its abilities."""
