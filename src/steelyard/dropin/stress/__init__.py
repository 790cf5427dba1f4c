"""Drop-in for cassandra-stress: `steelyard stress` takes its command lines, drives our agent, prints in its format.

    words -> grammar -> settings -> compiled (orders of the agent) -> action (schema, warm-up, load) -> output

Command lines have the same meaning as in cassandra-stress 3.11.4; the wording of messages and help is our own.
"""

from steelyard.dropin.stress.parse.refusal import Refused

__all__ = ["Refused"]
