"""Plug-in interface `probe`: instruments that read metrics on nodes during a trial; `base.py` is the protocol."""
