"""Plug-in interface `policy`: rules that say which size a cluster is to have; `base.py` is the protocol."""
