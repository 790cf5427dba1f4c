"""The seam `engine`: programs that generate load; `base.py` is the protocol, `agent.py` ours."""
