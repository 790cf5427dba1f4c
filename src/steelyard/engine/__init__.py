"""Plug-in interface `engine`: programs that generate load; `base.py` is the protocol, `agent.py` is ours."""
