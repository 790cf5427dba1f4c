"""Plug-in interface `site`: places that lend nodes; `base.py` is the protocol."""
